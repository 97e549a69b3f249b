"""The pytest plugin of the chaos suite: its options and fixtures.

Installed as a pytest plugin, so it is imported in every pytest run: it imports little, and its
fixtures cost nothing until a test asks for them.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

TOUR = "comparison.chaos.app:APP"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of `pytest --pyargs comparison.chaos`."""
    group = parser.getgroup("two-workers", "kill tests for engines and agents")
    group.addoption(
        "--two-workers-engine",
        action="append",
        metavar="NAME",
        help="An engine to break, by its entry point. Repeat for several. Default: all installed.",
    )
    group.addoption(
        "--two-workers-app",
        default=TOUR,
        metavar="MODULE:NAME",
        help="The app whose agent is broken in test_any_agent. Its effects run for real.",
    )
    group.addoption(
        "--two-workers-payload",
        default='["a", "b", "c", "d"]',
        metavar="JSON",
        help="What to start the agent with.",
    )
    group.addoption(
        "--two-workers-kills", default=3, type=int, metavar="N", help="Workers to kill per run."
    )
    group.addoption(
        "--two-workers-seed", default=1, type=int, metavar="N", help="Chooses the moments."
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each engine."""
    if "chaos_engine" in metafunc.fixturenames:
        from two_workers import engine_names

        names = metafunc.config.getoption("--two-workers-engine") or engine_names()
        metafunc.parametrize("chaos_engine", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def chaos_engine(request: pytest.FixtureRequest) -> str:
    """The name of the engine under test."""
    return str(request.param)


@pytest.fixture(scope="session")
def chaos_app(request: pytest.FixtureRequest) -> str:
    """The app whose agent is broken."""
    return str(request.config.getoption("--two-workers-app"))


@pytest.fixture(scope="session")
def chaos_payload(request: pytest.FixtureRequest) -> JsonValue:
    """What its agent is started with."""
    payload: JsonValue = json.loads(request.config.getoption("--two-workers-payload"))
    return payload


@pytest.fixture(scope="session")
async def chaos_server(
    chaos_engine: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Any, dict[str, str]]]:
    """The engine's plugin, and the environment with a prepared server in it."""
    from comparison.chaos.cluster import SETTINGS
    from two_workers import engine_plugin
    from two_workers.engines import server_for

    plugin = engine_plugin(chaos_engine)
    env = {**SETTINGS, **os.environ}
    directory = tmp_path_factory.mktemp(f"chaos-{chaos_engine}")
    async with server_for(plugin, env, directory=directory) as merged:
        yield plugin, merged


@pytest.fixture
async def cluster(chaos_server: tuple[Any, dict[str, str]], tmp_path: Path) -> AsyncIterator[Any]:
    """The workers of one test."""
    from comparison.chaos.cluster import Cluster

    plugin, env = chaos_server
    env = {**env, "TEMPORAL_VERSION_TASK_QUEUE": f"chaos-{uuid.uuid4().hex[:8]}"}
    async with plugin.connect(plugin.settings(env)) as engine:
        running = Cluster(engine, env, tmp_path)
        try:
            yield running
        finally:
            running.close()
