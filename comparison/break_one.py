"""Remove one guard from a scratch copy of the store, and see which check convicts it.

A guard is a line or a condition of `hand_rolled` that looks as if one could do without. `convict`
copies the package, removes that text, and runs the guard's scenario over the copy in processes of
their own. Nothing in the installed package changes.

The text is looked for, and must be there: if the store has changed so that it is not, the guard is
out of date and says so. A test convicts every one of them, so that no check here is for show.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from comparison.mapping.recording import Recording
from two_workers import BadInput

PATIENCE = 20.0
"""Seconds that a scenario over a broken store waits for what may never come."""


@dataclass(frozen=True, kw_only=True)
class Guard:
    """Something that the store would be broken without. `text` becomes `without` in `file`."""

    name: str
    invariant: str
    scenario: str
    says: str
    file: str
    text: str
    without: str = ""


_ALL = (
    Guard(
        name="claim",
        invariant="INV-CLAIM",
        scenario="race",
        says="the claim chooses a run without locking it",
        file="claim.py",
        text="    LIMIT %(want)s\n    FOR NO KEY UPDATE OF r SKIP LOCKED\n",
        without="    LIMIT %(want)s\n",
    ),
    Guard(
        name="fence",
        invariant="INV-FENCE",
        scenario="pause",
        says="a step is recorded without asking for the generation and the owner",
        file="journal.py",
        text=(
            "    WHERE r.run_id = %(run_id)s AND r.lease_generation = %(generation)s\n"
            "      AND r.lease_owner = %(worker)s\n"
        ),
        without="    WHERE r.run_id = %(run_id)s\n",
    ),
    Guard(
        name="expiry",
        invariant="INV-ORPHAN",
        scenario="kill",
        says="an expired lease is no reason to take a run over",
        file="reclaim.py",
        text="           OR r.lease_expires_at <= statement_timestamp()\n",
    ),
    Guard(
        name="progress",
        invariant="INV-LIVE",
        scenario="stuck",
        says="a worker that beats may keep its run for ever",
        file="reclaim.py",
        text="OR r.progress_at <= statement_timestamp() - %(progress_timeout)s::interval)",
        without=")",
    ),
    Guard(
        name="cancel",
        invariant="INV-CANCEL",
        scenario="cancel",
        says="a takeover does not look at the request to cancel",
        file="reclaim.py",
        text="        WHEN r.cancel_requested THEN 'cancelled'\n",
    ),
    Guard(
        name="boundary",
        invariant="INV-CANCEL",
        scenario="boundary",
        says="an uninterruptible step is interrupted like any other",
        file="effects.py",
        text="        if not effect.uninterruptible:\n",
        without="        if True:\n",
    ),
    Guard(
        name="journal",
        invariant="INV-RESUME",
        scenario="kill",
        says="what is recorded is executed again",
        file="handler.py",
        text="        if recorded is not None:\n            return recorded\n",
    ),
    Guard(
        name="replay",
        invariant="INV-RESUME",
        scenario="deploy",
        says="a recorded outcome is handed to whatever the agent asks for now",
        file="replay.py",
        text=(
            "        if found.fingerprint != asked:\n"
            "            raise self._mismatch(place, found.fingerprint, asked)\n"
        ),
    ),
    Guard(
        name="drain",
        invariant="INV-RESUME",
        scenario="stop",
        says="a worker that is told to stop drops its steps at once",
        file="shift.py",
        text="            await asyncio.wait(self._tasks, timeout=self._settings.drain_timeout)\n",
        without="            await asyncio.wait(self._tasks, timeout=0)\n",
    ),
    Guard(
        name="blame",
        invariant="INV-BLAME",
        scenario="poison",
        says="a run may kill as many workers as it likes",
        file="reclaim.py",
        text=(
            "        WHEN r.lease_alone AND r.solo_crashes + 1 >= %(max_crashes)s THEN 'failed'\n"
        ),
    ),
    Guard(
        name="limit",
        invariant="INV-CAP",
        scenario="limits",
        says="a claim takes what it wants, whatever room is left",
        file="claim.py",
        text="    LIMIT (SELECT greatest(0, least(room, %(want)s)) FROM total)\n",
    ),
    Guard(
        name="tenant",
        invariant="INV-CAP",
        scenario="limits",
        says="a tenant's turn is not bounded by the tenant's room",
        file="claim.py",
        text="least(turn.room, greatest(1, %(want)s / (SELECT count(*) FROM turn)))",
        without="greatest(1, %(want)s / (SELECT count(*) FROM turn))",
    ),
    Guard(
        name="pool",
        invariant="INV-CAP",
        scenario="limits",
        says="a slot is granted without comparing with the pool's size",
        file="limits.py",
        text=" AND p.calls < p.max_calls",
    ),
    Guard(
        name="budget",
        invariant="INV-BUDGET",
        scenario="budget",
        says="a reservation is not compared with the budget",
        file="limits.py",
        text="      AND r.cost + r.reserved + %(amount)s <= r.budget\n",
    ),
    Guard(
        name="fairness",
        invariant="INV-FAIR",
        scenario="fairness",
        says="tenants are served by name, not by who waits longest",
        file="claim.py",
        text="    ORDER BY line.last_claimed_at, line.tenant\n",
        without="    ORDER BY line.tenant\n",
    ),
)
GUARDS = {guard.name: guard for guard in _ALL}


def find_guard(name: str) -> Guard:
    """Raises `BadInput` with the names that exist."""
    if name not in GUARDS:
        raise BadInput(f"unknown guard {name!r}; known: {', '.join(GUARDS)}")
    return GUARDS[name]


def difference(guard: Guard) -> str:
    """What is removed, as a unified diff. Raises `BadInput` if it is not there any more."""
    path = _package() / guard.file
    before = path.read_text()
    name = f"hand_rolled/{guard.file}"
    return "".join(
        difflib.unified_diff(
            before.splitlines(keepends=True),
            _without(guard, before).splitlines(keepends=True),
            name,
            f"scratch copy of {name}",
            n=2,
        )
    )


async def convict(guard: Guard) -> Recording:
    """Run the guard's scenario over a store without it. Raises `RuntimeError` if that breaks."""
    with _scratch_copy(guard) as folder:
        out = folder / "recording.json"
        told = {"STUDY_STORE": str(folder), "STUDY_DEADLINE": f"{PATIENCE:g}"}
        module = "comparison.mapping.scenarios.run"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, guard.scenario, "hand_rolled", str(out)),
            cwd=folder,  # comes first on the path, in this process and in its workers
            env={**os.environ, **told},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            said, _ = await process.communicate()
        finally:
            if process.returncode is None:  # interrupted: it stops its servers and workers
                process.terminate()
                await process.wait()
        if not out.exists():
            raise RuntimeError(f"the scenario over the broken store failed:\n{said.decode()}")
        found = Recording.model_validate_json(out.read_text())
    return found.model_copy(update={"title": f"{guard.says} ({found.title.rstrip('.')})"})


@contextmanager
def _scratch_copy(guard: Guard) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="two-workers-broken-") as name:
        folder = Path(name)
        copy = folder / "hand_rolled"
        shutil.copytree(_package(), copy, ignore=shutil.ignore_patterns("__pycache__"))
        path = copy / guard.file
        path.write_text(_without(guard, path.read_text()))
        yield folder


def _package() -> Path:
    spec = find_spec("hand_rolled")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _without(guard: Guard, source: str) -> str:
    if guard.text not in source:
        raise BadInput(
            f"guard {guard.name!r} is out of date: hand_rolled/{guard.file} has no {guard.text!r}"
        )
    return source.replace(guard.text, guard.without, 1)
