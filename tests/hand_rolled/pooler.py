"""A real PgBouncer in transaction mode between worker and database; it can be killed and restarted.

Few backends, taken in turn: what one client leaves on a session, another one meets.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
BACKENDS = 3

CONFIGURATION = """
[databases]
* = host={host} port={port} user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {backends}
server_round_robin = 1
"""


@dataclass
class Pooler:
    """Lets everybody in, and logs in to the server itself."""

    directory: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    def url(self, database: str) -> str:
        return f"postgresql://anybody@127.0.0.1:{self.port}/{database}"

    def configure(self, server_url: str) -> None:
        configuration = self.directory / "pgbouncer.ini"
        configuration.write_text(
            CONFIGURATION.format(
                **conninfo_to_dict(server_url), listen=self.port, backends=BACKENDS
            )
        )
        configuration.chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(self.directory, "nobody")
            shutil.chown(configuration, "nobody")

    def start(self) -> None:
        """Start and wait until it answers; after a kill, on the same port."""
        # It refuses to run as root.
        other = {"user": "nobody", "extra_groups": []} if os.geteuid() == 0 else {}
        with (self.directory / "log").open("ab") as log:
            command = [str(PGBOUNCER), str(self.directory / "pgbouncer.ini")]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **other)
        deadline = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.05)
        raise AssertionError(f"no pooler: {(self.directory / 'log').read_text()}")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@contextmanager
def pooler_to(server_url: str) -> Iterator[Pooler]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory:
        pooler = Pooler(Path(directory), port)
        pooler.configure(server_url)
        try:
            pooler.start()
            yield pooler
        finally:
            pooler.kill()
