"""Settings, migrations, the embedded server, and what operators look at."""

from __future__ import annotations

import asyncio
import os
import site
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

import hand_rolled
from hand_rolled import operations
from hand_rolled.migrate import migrate, scripts
from hand_rolled.plugin import PLUGIN
from hand_rolled.server import EmbeddedPostgres, _reachable_by_all, embedded
from hand_rolled.settings import Settings, read_settings
from tests.hand_rolled.bench import Store
from two_workers import BadInput

URL = {"DATABASE_URL": "postgresql://localhost/x"}


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({}, "DATABASE_URL is not set"),
        ({"DATABASE_URL": "nonsense"}, "DATABASE_URL must look like postgresql://"),
        (URL | {"HAND_ROLLED_LEASE_TTL": "soon"}, "HAND_ROLLED_LEASE_TTL: .*found 'soon'"),
        (URL | {"HAND_ROLLED_LEASE_TTL": "-1"}, "HAND_ROLLED_LEASE_TTL: .*greater than 0"),
        (URL | {"HAND_ROLLED_HEARTBEAT_INTERVAL": "9"}, "at most a third of HAND_ROLLED_LEASE_TTL"),
        (URL | {"HAND_ROLLED_LEASE_TLL": "9"}, "unknown setting HAND_ROLLED_LEASE_TLL; known: "),
        (URL | {"HAND_ROLLED_CONCURRENCY": "0"}, "HAND_ROLLED_CONCURRENCY"),
    ],
)
def test_impossible_settings_are_one_clear_line(env: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message) as found:
        read_settings(env)
    assert "\n" not in str(found.value)


def test_a_password_in_a_bad_address_is_not_repeated() -> None:
    with pytest.raises(BadInput) as found:
        read_settings({"DATABASE_URL": "postgresql://me:hunter2@host:port/x y z=1"})
    assert "hunter2" not in str(found.value)


def test_settings_come_from_the_environment_and_cannot_be_changed() -> None:
    settings = read_settings(URL | {"HAND_ROLLED_LEASE_TTL": "30", "HAND_ROLLED_NOTIFY": "off"})
    assert (settings.lease_ttl, settings.notify) == (30, False)
    with pytest.raises(Exception, match="frozen"):
        settings.lease_ttl = 60  # type: ignore[misc] # the mistake under test


async def test_migrations_race_and_repeat(server: EmbeddedPostgres) -> None:
    with psycopg.connect(server.url(), autocommit=True) as admin:
        admin.execute("CREATE DATABASE racing")
    settings = Settings(database_url=server.url("racing"))
    applied = await asyncio.gather(*(migrate(settings) for _ in range(5)))
    assert sorted(applied, key=len) == [[], [], [], [], list(scripts())]
    assert await migrate(settings) == []
    with psycopg.connect(server.url(), autocommit=True) as admin:
        admin.execute("DROP DATABASE racing WITH (FORCE)")


async def test_the_embedded_server_is_durable_local_and_stopped_afterwards(tmp_path: Path) -> None:
    async with PLUGIN.embedded(tmp_path, {}) as env:
        assert PLUGIN.is_configured(env)
        with psycopg.connect(env["DATABASE_URL"]) as connection:
            shown = connection.execute(
                "SELECT current_setting('fsync'), current_setting('synchronous_commit'), "
                "current_setting('listen_addresses')"
            ).fetchone()
    assert shown == ("on", "on", "127.0.0.1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(env["DATABASE_URL"], connect_timeout=3)
    assert not (tmp_path / "postgres" / "data" / "postmaster.pid").exists()


async def test_the_embedded_server_keeps_its_data_and_address(tmp_path: Path) -> None:
    async with embedded(tmp_path) as first:
        with psycopg.connect(first["DATABASE_URL"]) as connection:
            connection.execute("CREATE TABLE kept ()")
        server = EmbeddedPostgres(tmp_path / "postgres")
        server.restart("immediate")
        assert {"DATABASE_URL": server.url()} == first
        with psycopg.connect(first["DATABASE_URL"]) as connection:
            connection.execute("SELECT FROM kept")
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(first["DATABASE_URL"].replace("postgres:", "postgres:wrong"))


async def test_the_embedded_server_stops_when_its_user_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with embedded(tmp_path):
            raise ZeroDivisionError
    assert not (tmp_path / "postgres" / "data" / "postmaster.pid").exists()


def test_the_embedded_server_does_not_outlive_a_killed_owner(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys; from pathlib import Path; from hand_rolled.server import embedded\n"
        "async def main():\n"
        "    async with embedded(Path(sys.argv[1])):\n"
        "        print('up', flush=True); await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        pid_file = tmp_path / "postgres" / "data" / "postmaster.pid"
        assert pid_file.exists()
        owner.kill()
    deadline = time.monotonic() + 60
    while pid_file.exists():
        assert time.monotonic() < deadline, "the server is still there"
        time.sleep(0.05)


def for_everybody() -> str | None:
    """A Python of this version that an ordinary user may run."""
    minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for found in (sys.executable, f"/usr/bin/{minor}", f"/usr/local/bin/{minor}"):
        if Path(found).exists() and _reachable_by_all(Path(found).resolve()):
            return found
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.skipif(for_everybody() is None, reason="no Python that an ordinary user may run")
async def test_the_embedded_server_works_as_an_ordinary_user() -> None:
    """As root, the server alone runs as another user; here the whole process does."""
    script = (
        "import asyncio, sys, psycopg; from pathlib import Path\n"
        "from hand_rolled.server import embedded\n"
        "async def main():\n"
        "    async with embedded(Path(sys.argv[1])) as env:\n"
        "        psycopg.connect(env['DATABASE_URL']).close(); print('works')\n"
        "asyncio.run(main())\n"
    )
    path = ":".join([str(Path(hand_rolled.__file__).parent.parent), *site.getsitepackages()])
    with tempfile.TemporaryDirectory() as room:
        os.chown(room, 65534, 65534)
        done = await asyncio.to_thread(
            subprocess.run,
            [str(for_everybody()), "-W", "error", "-c", script, room],
            user=65534, group=65534, extra_groups=[], cwd="/",
            env={"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("works\n", "", 0)


def test_importing_the_engine_says_nothing() -> None:
    quiet = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", "import hand_rolled.server as s; s._wheel_programs()"],
        env=quiet, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("", "")


# Operations


async def test_workers_are_listed_with_their_state(store: Store) -> None:
    alive, silent, dead, stopped = [await store.hand() for _ in range(4)]
    await store.enqueue()
    await alive.claim_one()
    await store.rows(
        "UPDATE workers SET heartbeat_at = clock_timestamp() - interval '1 h' WHERE worker_id = %s",
        silent.owner,
    )
    await store.declare_dead(dead)
    await store.rows("UPDATE workers SET stopped_at = now() WHERE worker_id = %s", stopped.owner)
    found = await operations.list_workers(store.database)
    listed = {it.worker_id: (it.state, it.runs) for it in found}
    assert listed == {alive.owner: ("alive", 1), silent.owner: ("silent", 0)}
    found = await operations.list_workers(store.database, everyone=True)
    everyone = {it.worker_id: it.state for it in found}
    assert everyone[dead.owner] == "dead"
    assert everyone[stopped.owner] == "stopped"


async def test_ready_runs_that_nobody_serves_are_reported_first(store: Store) -> None:
    await store.hand()
    await store.enqueue()
    for _ in range(2):
        await store.enqueue(kind="unheard-of")
    ready = [(it.kind, it.runs, it.served) for it in await operations.list_ready(store.database)]
    assert ready == [("unheard-of", 2, False), ("test", 1, True)]


async def test_prune_deletes_what_ended_long_ago_and_nothing_else(store: Store) -> None:
    old, fresh, open_ = [await store.enqueue() for _ in range(3)]
    hand = await store.hand()
    for held in await hand.claim(2):
        await held.record()
        await store.engine.signal(held.run_id, "go", 1, signal_id="1")
        await held.ending.finish(result=1)
    await store.rows("UPDATE runs SET closed_at = now() - interval '2 d' WHERE run_id = %s", old)
    assert await operations.prune(store.database, older_than=timedelta(days=1)) == 1
    for table in ("runs", "journal", "signals", "ownership"):
        left = {row["run_id"] for row in await store.rows(f"SELECT run_id FROM {table}")}
        assert old not in left
        assert fresh in left
    assert open_ in {row["run_id"] for row in await store.rows("SELECT run_id FROM runs")}
