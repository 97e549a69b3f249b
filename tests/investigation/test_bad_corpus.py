"""Folders of logs that are not quite that: files that are none, paths that are none, no end."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from investigation.logs import files as log_files
from investigation.tools import check_corpus, run_tool
from tests.investigation.conftest import ask, refusal
from two_workers import BadInput


def test_what_is_no_log_is_skipped_and_named(corpus: Path, tmp_path: Path) -> None:
    (corpus / "core.bin").write_bytes(b"\x7fELF\0\0\0" * 100)
    (corpus / "old.log.gz").write_bytes(b"\x1f\x8b" + b"x" * 100)
    (corpus / "empty.log").touch()
    (tmp_path / "secret.txt").write_text("secret")
    (corpus / "link.log").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(corpus / "pipe.log")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(corpus / "s"))
    assert {one["file"]: one["why"] for one in ask(corpus, "list_files")["skipped"]} == {
        "core.bin": "binary",
        "empty.log": "empty",
        "link.log": "leads out of the corpus",
        "old.log.gz": "compressed; unpack it first",
        "pipe.log": "not a regular file",
        "s": "not a regular file",
    }
    assert "leads out of the corpus" in refusal(corpus, "read", file="link.log", line=1)
    assert "binary" in refusal(corpus, "read", file="core.bin", line=1)


def test_a_file_may_be_named_instead_of_a_folder(corpus: Path) -> None:
    (only,) = ask(corpus / "api.log", "list_files")["files"]
    assert only["file"] == "api.log"
    assert ask(corpus / "api.log", "read", file="api.log", line=1)["lines"]


def test_nested_folders_are_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b/2.log", "b/1.log", "a.log", ".hidden/x.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    names = [entry["file"] for entry in ask(tmp_path, "list_files")["files"]]
    assert names == ["a.log", "b/1.log", "b/2.log"]


def test_a_corpus_with_nothing_to_read_is_refused_in_one_line(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    binary = tmp_path / "binary"
    binary.mkdir()
    (binary / "a").write_bytes(b"\0")
    for path, complaint in (
        (tmp_path / "nowhere", "does not exist"),
        (empty, "it is empty"),
        (binary, "a: binary"),
    ):
        assert complaint in refusal(path, "list_files")
        with pytest.raises(BadInput, match=complaint) as caught:
            check_corpus(str(path))
        assert "\n" not in str(caught.value)


@contextmanager
def as_an_ordinary_user() -> Iterator[None]:
    """Root may read everything, so give that up for a moment."""
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if was_root:
            os.seteuid(0)


def test_an_unreadable_file_is_skipped_and_named() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "open.log").write_text("x\n")
        (folder / "closed.log").write_text("x\n")
        (folder / "closed.log").chmod(0)
        with as_an_ordinary_user():
            answer = ask(folder, "list_files")
        assert [entry["file"] for entry in answer["files"]] == ["open.log"]
        assert answer["skipped"] == [{"file": "closed.log", "why": "unreadable: Permission denied"}]


@pytest.mark.parametrize("corpus", ["closed", "closed/inner"])
def test_an_unreadable_folder_is_refused(tmp_path: Path, corpus: str) -> None:
    (tmp_path / "closed/inner").mkdir(parents=True)
    (tmp_path / "closed/a.log").write_text("x\n")
    (tmp_path / "closed").chmod(0)
    try:
        with as_an_ordinary_user():
            assert "may not be read" in refusal(tmp_path / corpus, "list_files")
    finally:
        (tmp_path / "closed").chmod(0o700)


def test_paths_that_are_no_paths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "loop.log").symlink_to("loop.log")
    (tmp_path / "a.log").write_text("x\n")
    (skipped,) = ask(tmp_path, "list_files")["skipped"]
    assert skipped["file"] == "loop.log"
    assert "may not be read" in refusal(Path("a\0b"), "list_files")
    assert "may not be read" in refusal(Path("x" * 5_000), "list_files")


def test_a_corpus_outside_the_allowed_folder_is_refused(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "allowed").mkdir()
    for path in (corpus, tmp_path / "allowed" / ".." / "corpus"):
        result = run_tool(str(path), "list_files", {}, root=tmp_path / "allowed")
        assert not result.ok
        assert "outside" in result.text
    assert run_tool(str(corpus), "list_files", {}, root=tmp_path).ok


def test_a_huge_file_is_read_up_to_a_bound_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "FILE_BYTES", 3 * 1024 * 1024)
    (tmp_path / "huge.log").write_text("2026-01-01 00:00:00 a line of forty chars..\n" * 200_000)
    answer = ask(tmp_path, "search", pattern="line", shapes=1)
    assert 70_000 < answer["files"][0]["matches"] < 72_000
    assert answer["incomplete"] == [
        {"file": "huge.log", "why": "only the first 3 of 8 MB were read"}
    ]


def test_a_line_without_end_takes_little_memory(tmp_path: Path) -> None:
    with (tmp_path / "a.log").open("wb") as handle:
        for _ in range(32):
            handle.write(b"x" * 1024 * 1024)
        handle.write(b"\n2026-01-01 00:00:00 the second line\n")
    answer = ask(tmp_path, "read", file="a.log", line=2, before=0, after=0)
    assert answer["lines"] == [[2, "2026-01-01 00:00:00 the second line"]]
