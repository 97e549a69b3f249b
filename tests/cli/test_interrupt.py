"""Ctrl-C leaves no process behind, whenever it comes."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cli.command import started


@pytest.mark.parametrize("group", [True, False], ids=["whole group", "command only"])
@pytest.mark.parametrize("engine", ["hand_rolled", "temporal"])
def test_interrupting_the_servers(engine: str, group: bool, tmp_path: Path) -> None:
    arguments = ("up", "--engine", engine, "--data", str(tmp_path / "data"))
    with started(*arguments, output=tmp_path / "output") as command:
        command.until(lambda: "ready" in command.text(), what="ready")
        assert len(command.family()) > 1, "a server runs, so that stopping it is seen"
        assert command.interrupt(group=group) == 0
        assert command.family() == []


@pytest.mark.parametrize("engine", ["hand_rolled", "temporal"])
def test_interrupting_while_a_server_starts(engine: str, tmp_path: Path) -> None:
    arguments = ("up", "--engine", engine, "--data", str(tmp_path / "data"))
    with started(*arguments, output=tmp_path / "output") as command:
        command.until(lambda: len(command.family()) > 1, what="starting")
        command.interrupt(group=True)
        assert command.family() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_an_investigation(number: int, tmp_path: Path) -> None:
    with started("investigate", "why?", output=tmp_path / "output") as command:
        command.until(lambda: "investigate-" in command.text(), what="investigating")
        command.process.send_signal(number)
        assert command.process.wait(timeout=60) == 130
        assert command.family() == []
        assert "Traceback" not in command.text()
