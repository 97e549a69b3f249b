"""Find log files under a folder, and stream their lines within bounds.

What a person points us at is not always a tidy folder of logs. Each trap has one answer here:

- a path that leads out of the corpus (`../`, an absolute path, a symbolic link) is refused;
- a binary or compressed file, a socket or pipe, an unreadable file is skipped, and named;
- a huge file is read up to `FILE_BYTES`, all files together up to `TOTAL_BYTES`, and the answer
  says what was left out. The bounds are bytes and not seconds, so the same corpus always gives
  the same answer;
- a line without end is cut at `LINE_BYTES`, so memory stays small.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

FILE_BYTES = 64 * 1024 * 1024
TOTAL_BYTES = 128 * 1024 * 1024
LINE_BYTES = 64 * 1024
MAX_FILES = 500
_PROBE = 8 * 1024


class ToolError(Exception):
    """What was asked for cannot be done; the message is for the model that asked."""


@dataclass(frozen=True)
class LogFile:
    """A readable text file of the corpus; `name` is its path relative to the corpus."""

    name: str
    path: Path
    size: int


@dataclass
class Corpus:
    """The files of a corpus in a fixed order, and what is not among them with the reason."""

    root: Path
    files: list[LogFile] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def pick(self, name: str) -> LogFile:
        """One file by its name. Raises `ToolError` for any other path."""
        for file in self.files:
            if file.name == name:
                return file
        for skipped, reason in self.skipped:
            if skipped == name:
                raise ToolError(f"{name!r} cannot be read: {reason}")
        known = ", ".join(file.name for file in self.files[:20])
        raise ToolError(f"no file {name!r} in this corpus; its files are: {known}")


def open_corpus(root: Path) -> Corpus:
    """List a folder, or a single file. Raises `ToolError` if nothing in it can be read."""
    try:
        is_file = stat.S_ISREG(root.stat().st_mode)
    except FileNotFoundError:
        raise ToolError(f"corpus {root} does not exist on this worker") from None
    except (OSError, ValueError) as error:  # a closed folder above it, a null byte in the name
        raise ToolError(f"corpus {root} may not be read: {error}") from None
    corpus = Corpus(root)
    if is_file:
        _consider(corpus, root, root.name)
    else:
        if not os.access(root, os.R_OK | os.X_OK):
            raise ToolError(f"corpus {root} may not be read")
        for path, name in _walk(root):
            if len(corpus.files) >= MAX_FILES:
                corpus.skipped.append((name, f"only the first {MAX_FILES} files are looked at"))
                break
            _consider(corpus, path, name)
    if not corpus.files:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in corpus.skipped[:5])
        raise ToolError(f"corpus {root} has no readable log file ({reasons or 'it is empty'})")
    return corpus


def _walk(root: Path) -> Iterator[tuple[Path, str]]:
    """All files below `root` in the order of their names. Linked folders are not entered."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                path = Path(folder, name)
                yield path, path.relative_to(root).as_posix()


def _consider(corpus: Corpus, path: Path, name: str) -> None:
    reason = _unfit(corpus.root, path)
    if reason is None:
        corpus.files.append(LogFile(name, path, path.stat().st_size))
    else:
        corpus.skipped.append((name, reason))


def _unfit(root: Path, path: Path) -> str | None:
    """Why a file is not read as a log, or None when it is."""
    try:
        if not path.resolve().is_relative_to(root.resolve()):
            return "leads out of the corpus"
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return "not a regular file"
        if status.st_size == 0:
            return "empty"
        with path.open("rb") as handle:
            head = handle.read(_PROBE)
    except OSError as error:
        return f"unreadable: {error.strerror or type(error).__name__}"
    except RuntimeError:  # how Python before 3.13 tells a loop of symbolic links
        return "unreadable: a loop of symbolic links"
    if head.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")):
        return "compressed; unpack it first"
    if b"\0" in head:
        return "binary"
    return None


class Scan:
    """Streams the lines of several files within the bounds, and remembers what it left out.

    `progress(bytes)` is called now and then with all bytes read so far.
    """

    def __init__(self, progress: Callable[[int], None] = lambda _: None) -> None:
        self.left_out: list[tuple[str, str]] = []
        self._room = TOTAL_BYTES
        self._progress = progress

    def lines(self, file: LogFile) -> Iterator[tuple[int, str]]:
        """The lines of a file with their numbers, from 1."""
        limit = min(FILE_BYTES, self._room)
        read = number = 0
        try:
            with file.path.open("rb") as handle:
                while raw := handle.readline(LINE_BYTES):
                    if read >= limit:
                        self._leave_out(file, read)
                        break
                    number += 1
                    read += len(raw)
                    if number % 20_000 == 0:
                        self._progress(TOTAL_BYTES - self._room + read)
                    # A zero byte late in a text file: databases refuse it in text.
                    text = raw.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
                    yield number, text.rstrip("\r\n")
                    while not raw.endswith(b"\n") and (raw := handle.readline(LINE_BYTES)):
                        read += len(raw)  # the rest of a line that is too long
                        if read >= limit:
                            break
        except OSError as error:
            self.left_out.append((file.name, f"unreadable: {error.strerror}"))
        finally:
            self._room -= read

    def _leave_out(self, file: LogFile, read: int) -> None:
        megabytes = 1024 * 1024
        self.left_out.append(
            (
                file.name,
                f"only the first {read // megabytes} of {file.size // megabytes} MB were read",
            )
        )
