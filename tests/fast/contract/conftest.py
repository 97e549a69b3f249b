"""The contract's bench over one engine: hand_rolled with its fast path."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from tests.contract.conftest import QUICK, bench  # noqa: F401 - a fixture, found by its name
from two_workers import EnginePlugin, engine_plugin


@pytest.fixture(scope="session")
async def server(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[EnginePlugin, dict[str, str]]]:
    plugin = engine_plugin("hand_rolled")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("DATABASE_", "TEMPORAL_"))}
    env = {**clean, **QUICK, "HAND_ROLLED_FAST": "true"}
    async with plugin.embedded(tmp_path_factory.mktemp("fast"), env) as found:
        merged = {**env, **found}
        await plugin.prepare(plugin.settings(merged))
        yield plugin, merged
