"""The chaos suite as others call it: by its name, from a folder without any configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OWN_APP = """
from two_workers import App, Call, Effect, Step, do

class Square(Step[int]):
    n: int

async def squares(count: int) -> list[int]:
    return [await do(Square(n=n)) for n in range(count)]

async def square(step: Square, call: Call) -> int:
    return step.n ** 2

APP = App(kind="squares", agent=squares, effects={Square: Effect(square)})
"""


def chaos(directory: Path, *options: str) -> tuple[int, str]:
    """Call the suite in this folder: pytest's exit code, and what it said."""
    done = subprocess.run(
        [Path(sys.executable).with_name("pytest"), "--pyargs", "comparison.chaos", *options],
        cwd=directory,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    return done.returncode, done.stdout + done.stderr


def test_all_tests_are_found_for_every_engine(tmp_path: Path) -> None:
    code, said = chaos(tmp_path, "--collect-only", "-q")
    assert code == 0, said
    for engine in ("hand_rolled", "temporal"):
        assert said.count(f"[{engine}]") == 5, said


def test_an_agent_of_ones_own_survives(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN_APP)
    own = ["--two-workers-app=own:APP", "--two-workers-payload=4", "--two-workers-kills=1"]
    code, said = chaos(tmp_path, "--two-workers-engine=hand_rolled", "-k", "any_agent", *own)
    assert code == 0, said
    assert "1 passed" in said, said


def test_a_worker_that_cannot_start_fails_the_test_at_once(tmp_path: Path) -> None:
    breaks = "import sys\nif 'pytest' not in sys.modules:\n    raise OSError('no such mailbox')\n"
    (tmp_path / "own.py").write_text(breaks + OWN_APP)
    own = ["--two-workers-app=own:APP", "--two-workers-payload=4"]
    code, said = chaos(tmp_path, "--two-workers-engine=hand_rolled", "-k", "any_agent", *own)
    assert code == 1, said
    assert "a worker exited by itself" in said
    assert "no such mailbox" in said


def test_the_plugin_that_is_missing_is_named(tmp_path: Path) -> None:
    code, said = chaos(tmp_path, "-p", "no:asyncio")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: comparison.chaos needs the plugin pytest-asyncio: pip install" in said


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["engine=nosuch"], "--two-workers-engine: unknown engine 'nosuch'; installed: "),
        (["app=nosuch:x"], "--two-workers-app: app 'nosuch:x': expected `package.module:NAME`"),
        (["app=broken:APP"], "--two-workers-app: importing broken:APP raised ZeroDivisionError"),
        (["payload={"], "--two-workers-payload: expected JSON, found '{'"),
        (["app=own:APP", 'payload="x"'], 'the agent of own:APP does not take "x": payload: '),
        (["payload=[1]"], "the agent of comparison.chaos.app:APP does not take [1]: [0]: "),
        (["kills=0"], "--two-workers-kills: expected a whole number from 1, found '0'"),
        (["kills=two"], "--two-workers-kills: expected a whole number from 1, found 'two'"),
        (["seed=-1"], "--two-workers-seed: expected a whole number from 0, found '-1'"),
    ],
)
def test_a_bad_option_is_refused_in_one_line(
    tmp_path: Path, options: list[str], complaint: str
) -> None:
    (tmp_path / "own.py").write_text(OWN_APP)
    (tmp_path / "broken.py").write_text("1 / 0")
    code, said = chaos(tmp_path, *(f"--two-workers-{option}" for option in options))
    assert code == pytest.ExitCode.USAGE_ERROR
    lines = [line for line in said.splitlines() if line]
    assert [line for line in lines if line.startswith("ERROR: ")] == lines[-1:], said
    assert complaint in lines[-1]
    assert "Traceback" not in said
