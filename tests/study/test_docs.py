"""Every command in the documents works, and every output shown is one that it gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from comparison.mapping.diagrams import STATES, WHOLE
from hand_rolled.catalogue import sql_of
from tests.study.console import ROOT, Command, Terminal, commands, differences
from two_workers import RunState

DOCS = sorted((ROOT / "docs").glob("*.md"))


SLOW = [command for path in DOCS for command in commands(path) if command.slow]


@pytest.mark.parametrize("page", ["idea", "claim-sql", "choosing", "real-servers"])
def test_a_page_shows_commands(page: str) -> None:
    assert list(commands(ROOT / "docs" / f"{page}.md"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_commands_give_what_is_shown(path: Path, tmp_path: Path) -> None:
    """One document, in its order: what an earlier command started is there for a later one."""
    with Terminal(tmp_path) as terminal:
        for command in commands(path):
            if not command.slow:
                _check(command, terminal)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("command", SLOW, ids=str)
def test_slow_commands_give_what_is_shown(command: Command, tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        _check(command, terminal)


def _check(command: Command, terminal: Terminal) -> None:
    output = terminal.run(command)
    missing = differences(command.shown, output)
    assert missing is None, f"{command} does not print\n{missing}\nbut\n{output}"


def test_the_diagrams_are_those_of_the_web_page() -> None:
    idea = (ROOT / "docs" / "idea.md").read_text()
    assert WHOLE in idea
    assert STATES in idea


def test_the_state_diagram_names_what_exists() -> None:
    statements = set(re.findall(r"[A-Z]{4,}", STATES))
    for name in statements:
        sql_of(name.lower())
    for state in RunState:
        assert state in STATES


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)\)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def test_shown_lines_are_compared_in_order_and_numbers_are_not() -> None:
    output = "one 1.5 s\ntwo\nthree\nfour"
    assert differences(["one 99 s", "two", "...", "four"], output) is None
    assert differences(["two", "one 1.5 s"], output) == "two\none 1.5 s"
    assert differences(["one 1 s", "three"], output) == "one 1 s\nthree"
    assert differences(["five"], output) == "five"
