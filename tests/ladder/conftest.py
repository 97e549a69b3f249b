"""One PostgreSQL for all tests of the story arm, the ladder and the proxy."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import psycopg
import pytest

from comparison.proxy import Proxy
from hand_rolled.server import EmbeddedPostgres, embedded
from tests.ladder.proxied import Connection, through


@pytest.fixture(scope="session")
async def postgres(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedPostgres]:
    directory = tmp_path_factory.mktemp("postgres")
    unsafe = {"fsync": "off"}  # no test of these pulls the plug of the machine
    async with embedded(directory, unsafe):
        yield EmbeddedPostgres(directory / "postgres", unsafe)


@pytest.fixture
async def proxy(postgres: EmbeddedPostgres) -> AsyncIterator[Proxy]:
    async with Proxy.before("127.0.0.1", postgres.port) as proxy:
        yield proxy


@pytest.fixture
async def near(proxy: Proxy, postgres: EmbeddedPostgres) -> AsyncIterator[Connection]:
    """A connection through the proxy."""
    connection = await psycopg.AsyncConnection.connect(through(proxy, postgres), autocommit=True)
    yield connection
    await connection.close()


@pytest.fixture
async def witness(postgres: EmbeddedPostgres) -> AsyncIterator[Connection]:
    """A connection past the proxy."""
    async with await psycopg.AsyncConnection.connect(postgres.url(), autocommit=True) as connection:
        yield connection


@pytest.fixture
async def table(witness: Connection) -> AsyncIterator[str]:
    name = f"t_{uuid.uuid4().hex[:8]}"
    await witness.execute(f"CREATE TABLE {name} (n int)")
    yield name
    await witness.execute(f"DROP TABLE {name}")
