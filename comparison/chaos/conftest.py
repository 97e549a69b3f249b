"""The fixtures of the chaos suite: an engine, its server, and a cluster for each test.

Fixtures and tests name their event loop themselves, so that the suite runs the same under any
pytest configuration: that of the project it is called from, or none.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from comparison.chaos.cluster import SETTINGS, Cluster
from comparison.chaos.plugin import OPTIONS, Options
from two_workers import BadInput, engine_names, engine_plugin
from two_workers.engines import server_for
from two_workers.protocol import EnginePlugin


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each engine."""
    if "chaos_engine" in metafunc.fixturenames:
        names = metafunc.config.stash[OPTIONS].engines or engine_names()
        metafunc.parametrize("chaos_engine", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def chaos_options(pytestconfig: pytest.Config) -> Options:
    """What the command line asks for."""
    return pytestconfig.stash[OPTIONS]


@pytest.fixture(scope="session")
def chaos_engine(request: pytest.FixtureRequest) -> EnginePlugin:
    """The engine under test."""
    try:
        return engine_plugin(request.param)
    except BadInput as error:  # one that nobody named, installed without what it needs
        pytest.fail(f"{error}; or choose with --two-workers-engine", pytrace=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chaos_server(
    chaos_engine: EnginePlugin, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, str]]:
    """The environment with a prepared server in it."""
    directory = tmp_path_factory.mktemp("chaos-server")
    async with server_for(chaos_engine, {**SETTINGS, **os.environ}, directory=directory) as env:
        yield env


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(
    chaos_engine: EnginePlugin, chaos_server: dict[str, str], tmp_path: Path
) -> AsyncIterator[Cluster]:
    """The workers of one test."""
    env = {**chaos_server, "TEMPORAL_VERSION_TASK_QUEUE": f"chaos-{uuid.uuid4().hex[:8]}"}
    async with chaos_engine.connect(chaos_engine.settings(env)) as engine:
        running = Cluster(engine, env, tmp_path)
        try:
            yield running
        finally:
            running.close()
