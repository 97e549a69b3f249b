"""Every command in the documents works, and every output shown is one that it gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.study.console import ROOT, Command, Terminal, commands, differences

DOCS = sorted((ROOT / "docs").glob("*.md"))


def _cases() -> Iterator[object]:
    for path in DOCS:
        for command in commands(path):
            marks = pytest.mark.slow if command.slow else ()
            yield pytest.param(command, id=str(command), marks=marks)


@pytest.fixture(scope="module")
def terminals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Terminal]]:
    """A terminal for each document, so that its commands follow each other."""
    opened = {path.name: Terminal(tmp_path_factory.mktemp(path.stem)) for path in DOCS}
    yield opened
    for terminal in opened.values():
        terminal.close()


def test_there_are_at_most_four_pages_and_each_shows_something() -> None:
    assert 1 <= len(DOCS) <= 4
    for path in DOCS:
        assert list(commands(path)), path.name


@pytest.mark.timeout(900)
@pytest.mark.parametrize("command", list(_cases()))
def test_a_command_gives_what_is_shown(command: Command, terminals: dict[str, Terminal]) -> None:
    output = terminals[command.document].run(command)
    missing = differences(command.shown, output)
    assert missing is None, f"{command} does not print\n{missing}\nbut\n{output}"


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    import re

    for target in re.findall(r"\]\(([^)#\s]+)\)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def test_shown_lines_are_compared_in_order_and_numbers_are_not() -> None:
    output = "one 1.5 s\ntwo\nthree\nfour"
    assert differences(["one 99 s", "two", "...", "four"], output) is None
    assert differences(["two", "one 1.5 s"], output) == "two\none 1.5 s"
    assert differences(["one 1 s", "three"], output) == "one 1 s\nthree"
    assert differences(["five"], output) == "five"
