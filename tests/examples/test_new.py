"""`two-workers new`: what it writes works, which is shown by running its own test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.app_bench import QUICK, clean_environment


def two_workers(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "two_workers.cli", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_new_agent_passes_its_own_test_on_both_engines(tmp_path: Path) -> None:
    written = two_workers("new", "my_agent", cwd=tmp_path)
    assert written.returncode == 0, written.stderr

    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path / "my_agent",
        env={**clean_environment(), **QUICK},
        capture_output=True,
        text=True,
        timeout=110,
    )

    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "2 passed" in tested.stdout
    assert "Warning" not in tested.stdout + tested.stderr


def test_a_new_agent_passes_the_usual_lint(tmp_path: Path) -> None:
    two_workers("new", "my_agent", cwd=tmp_path)
    for command in (["check", "--select", "E,F,W,I,UP,B,SIM"], ["format", "--check"]):
        linted = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "100", "."],
            cwd=tmp_path / "my_agent",
            capture_output=True,
            text=True,
        )
        assert linted.returncode == 0, linted.stdout


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("My-Agent", "small letters"),
        ("class", "cannot name a Python package"),
        ("json", "already the name of an installed module"),
        ("two_workers", "already the name of an installed module"),
        ("../escape", "small letters"),
    ],
)
def test_a_name_that_cannot_work_is_refused(tmp_path: Path, name: str, complaint: str) -> None:
    refused = two_workers("new", name, cwd=tmp_path)

    assert refused.returncode == 2
    assert complaint in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "my_agent").mkdir()

    refused = two_workers("new", "my_agent", cwd=tmp_path)

    assert refused.returncode == 2
    assert "already exists" in refused.stderr
