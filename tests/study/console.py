"""Console blocks of a document: the commands are run, what is shown must be what they say.

    ```console
    $ two-workers mapping fence
    fencing generation
    ...
    convicted by INV-FENCE
    ```

Lines that are shown together must stand together in the output, `...` stands for any lines. Digits
and the tails of run ids may differ, and so may white space: they are measured, the words are not.
`$ two-workers up` goes on in the background; what it exports is set for the commands that follow.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.command import Started, clean_environment

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
_BLOCK = re.compile(r"^```console(?P<mark>[^\n]*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (\w+)='(.*)'$", re.MULTILINE)


@dataclass
class Command:
    """One command and the output that is shown for it."""

    document: str
    line: int
    text: str
    slow: bool
    shown: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.document}:{self.line} {self.text}"


def commands(path: Path) -> Iterator[Command]:
    """Every command of a document, in order."""
    source = path.read_text()
    for block in _BLOCK.finditer(source):
        found: Command | None = None
        first = source.count("\n", 0, block.start("text")) + 1
        for number, line in enumerate(block["text"].splitlines(), start=first):
            if line.startswith("$ "):
                if found is not None:
                    yield found
                found = Command(path.name, number, line[2:], "slow" in block["mark"])
            elif found is not None:
                found.shown.append(line)
        if found is not None:
            yield found


class Terminal:
    """Runs the commands of one document, one after the other."""

    def __init__(self, directory: Path) -> None:
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        self._env = clean_environment(PATH=path, COLUMNS="80", RESULTS=str(directory))
        self._directory = directory
        self._up: Started | None = None

    def run(self, command: Command) -> str:
        """The command's output, both streams together."""
        if command.text == "two-workers up":
            return self._start_servers()
        done = subprocess.run(
            ["bash", "-c", command.text],
            cwd=ROOT,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def _start_servers(self) -> str:
        data = str(self._directory / "data")
        self._up = Started("up", "--data", data, output=self._directory / "up.txt")
        self._up.until(lambda: "ready; Ctrl-C" in self._up_says(), what="ready")
        self._env.update(_EXPORT.findall(self._up_says()))
        return self._up_says()

    def _up_says(self) -> str:
        assert self._up is not None
        return self._up.text()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the servers, if there are any, as Ctrl-C would."""
        if self._up is not None:
            self._up.interrupt(group=True)
            self._up.close()


def differences(shown: list[str], output: str) -> str | None:
    """The first shown lines that the output does not have at their place, or None."""
    lines = [_masked(line) for line in output.splitlines()]
    for chunk in _chunks(shown):
        wanted = [_masked(line) for line in chunk]
        starts = range(len(lines) - len(wanted) + 1)
        at = next((i for i in starts if lines[i : i + len(wanted)] == wanted), None)
        if at is None:
            return "\n".join(chunk)
        lines = lines[at + len(wanted) :]
    return None


def _chunks(shown: list[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    for line in [*shown, "..."]:
        if line.strip() != "...":
            chunk.append(line)
        elif chunk:
            yield chunk
            chunk = []


def _masked(line: str) -> str:
    line = re.sub(r"(run_123|investigate)-[0-9a-f]+", r"\1-*", line)
    line = re.sub(r"\d{8}T\d{6}Z", "#", line)
    line = re.sub(r"\d[\d.,]*", "#", line)
    return " ".join(line.split())
