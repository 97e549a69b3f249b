"""One PostgreSQL for the session, one migrated database for each test, copied from a template."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from hand_rolled.database import Database
from hand_rolled.migrate import migrate
from hand_rolled.server import EmbeddedPostgres, embedded
from hand_rolled.settings import Settings
from tests.hand_rolled.bench import Store
from tests.hand_rolled.fleet import Fleet

_numbers = itertools.count()


@pytest.fixture(scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedPostgres]:
    directory = tmp_path_factory.mktemp("hand_rolled")
    # Without fsync: a thousand databases come and go, and no test pulls the plug of the machine.
    unsafe = {"fsync": "off", "autovacuum_naptime": "5min"}
    async with embedded(directory, unsafe):
        yield EmbeddedPostgres(directory / "postgres", unsafe)


@pytest.fixture(scope="session")
async def template(server: EmbeddedPostgres) -> str:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE store_template")
    await migrate(Settings(database_url=server.url("store_template")))
    return "store_template"


@pytest.fixture
def url(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    name = f"store_{next(_numbers)}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield server.url(name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def settings(url: str) -> Settings:
    return Settings(
        database_url=url, lease_ttl=60, heartbeat_interval=1, pool_size=16, notify=False
    )


@pytest.fixture
async def store(settings: Settings, url: str) -> AsyncIterator[Store]:
    async with Database(settings, application="test").opened() as database:
        store = Store(database, url)
        yield store
        await store.close()


@pytest.fixture
def fleet(store: Store, tmp_path: Path) -> Iterator[Fleet]:
    """Worker processes with short leases; a test changes what it is about."""
    quick = {
        "DATABASE_URL": store.url,
        "HAND_ROLLED_LEASE_TTL": "6",
        "HAND_ROLLED_HEARTBEAT_INTERVAL": "1",
        "HAND_ROLLED_POLL_INTERVAL": "0.1",
        "HAND_ROLLED_CONCURRENCY": "4",
    }
    fleet = Fleet(store, tmp_path, quick)
    yield fleet
    fleet.close()
