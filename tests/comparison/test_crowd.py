"""Real crowds on real servers: judged right, and convicting a store whose guards are gone."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from comparison.break_one import Guard, find_guard

TOGETHER = (
    # None of them is in the way of another.
    *(find_guard(name) for name in ("pool", "budget", "fairness")),
    Guard(
        name="taken",
        invariant="INV-SIGNAL",
        scenario="",
        says="a signal that was taken is taken again",
        file="waits.py",
        text=" AND s.taken_by IS NULL",
    ),
)
BLAME = Guard(
    name="alone",
    invariant="INV-BLAME",
    scenario="",
    says="any death of its worker is held against a run",
    file="reclaim.py",
    text="WHEN r.lease_alone AND r.solo_crashes + 1 >= %(max_crashes)s THEN",
    without="WHEN r.crashes + 1 >= %(max_crashes)s THEN",
)


async def play(
    arm: str, directory: Path, *, cwd: Path | None = None, seed: int = 1
) -> tuple[int, dict[str, str]]:
    """A crowd in a process of its own: the exit code, and what was found, by invariant."""
    command = [sys.executable, "-m", "comparison.crowd", arm, str(directory), "--seed", str(seed)]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": ""}
    )
    said, _ = await process.communicate()
    assert process.returncode is not None
    lines = [line.split(maxsplit=1) for line in said.decode().splitlines()]
    found = {}
    for outcome, rest in lines:
        outcome, rest = (outcome, rest) if outcome != "not" else tuple(rest.split(maxsplit=1))
        found[rest.split()[0]] = outcome
    return process.returncode, found


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("arm", "promised"),
    [
        ("hand_rolled", {"INV-SIGNAL", "INV-CAP", "INV-BUDGET", "INV-FAIR", "INV-BLAME"}),
        ("temporal+tuned", {"INV-SIGNAL", "INV-CAP", "INV-BUDGET"}),
    ],
)
async def test_a_healthy_engine_keeps_what_it_promises_in_a_crowd(
    tmp_path: Path, arm: str, promised: set[str]
) -> None:
    code, found = await play(arm, tmp_path)
    assert {invariant for invariant, outcome in found.items() if outcome == "pass"} == promised
    assert set(found.values()) <= {"pass", "promised"}
    assert code == 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("guards", [TOGETHER, (BLAME,)], ids=["together", "blame"])
async def test_a_store_without_its_guards_is_convicted_of_each(
    tmp_path: Path, guards: Sequence[Guard]
) -> None:
    """They are removed in a scratch copy of the store, which is otherwise what is shipped.

    What a missing guard lets through is a race: whoever was not caught may win it another time.
    """
    spec = find_spec("hand_rolled")
    assert spec is not None
    assert spec.origin is not None
    shutil.copytree(Path(spec.origin).parent, tmp_path / "hand_rolled")
    for guard in guards:
        path = tmp_path / "hand_rolled" / guard.file
        assert guard.text in path.read_text(), f"guard {guard.name} is out of date"
        path.write_text(path.read_text().replace(guard.text, guard.without, 1))
    guilty, convicted = {guard.invariant for guard in guards}, set[str]()
    for seed in (1, 2, 3):
        place = tmp_path / f"out-{seed}"
        code, found = await play("hand_rolled", place, cwd=tmp_path, seed=seed)
        assert (code == 1) == ("FAIL" in found.values())
        convicted |= {invariant for invariant, outcome in found.items() if outcome == "FAIL"}
        if guilty <= convicted:
            return
    assert guilty <= convicted
