"""One PostgreSQL for all tests of the story arm, the ladder and the proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hand_rolled.server import EmbeddedPostgres, embedded


@pytest.fixture(scope="session")
async def postgres(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedPostgres]:
    directory = tmp_path_factory.mktemp("postgres")
    unsafe = {"fsync": "off"}  # no test of these pulls the plug of the machine
    async with embedded(directory, unsafe):
        yield EmbeddedPostgres(directory / "postgres", unsafe)
