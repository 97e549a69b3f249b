"""The fixtures of the store's tests, with the fast path switched on."""

from __future__ import annotations

from pathlib import Path

import pytest

from hand_rolled.fast.claims import FastClaims
from hand_rolled.settings import Settings
from tests.fast.journal import grouped
from tests.hand_rolled.bench import Store
from tests.hand_rolled.conftest import *  # noqa: F403 - fixtures are found by their names
from tests.hand_rolled.fleet import Fleet


@pytest.fixture
def settings(url: str) -> Settings:
    return Settings(
        database_url=url, lease_ttl=60, heartbeat_interval=1, pool_size=16, notify=False, fast=True
    )


@pytest.fixture(autouse=True)
def _journals_write_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "journal", grouped)


@pytest.fixture(autouse=True)
def _claims_begin_at_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "claims", lambda store, worker: FastClaims(store.database, worker))


@pytest.fixture(autouse=True)
def _worker_processes_are_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAND_ROLLED_FAST", "true")


@pytest.fixture
def fleet(store: Store, tmp_path: Path):
    quick = {
        "DATABASE_URL": store.url,
        "HAND_ROLLED_FAST": "true",
        "HAND_ROLLED_LEASE_TTL": "6",
        "HAND_ROLLED_HEARTBEAT_INTERVAL": "1",
        "HAND_ROLLED_POLL_INTERVAL": "0.1",
        "HAND_ROLLED_CONCURRENCY": "4",
    }
    fleet = Fleet(store, tmp_path, quick)
    yield fleet
    fleet.close()
