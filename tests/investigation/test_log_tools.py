"""The log tools: right answers on ordinary logs, and readable refusals on everything else."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from investigation.logs import files as log_files
from investigation.logs.times import Clock
from investigation.tools import check_corpus, run_tool
from two_workers import BadInput


def ask(corpus: Path, tool: str, **arguments: Any) -> Any:
    result = run_tool(str(corpus), tool, arguments)
    assert result.ok, result.text
    return json.loads(result.text)


def refusal(corpus: Path, tool: str, **arguments: Any) -> str:
    result = run_tool(str(corpus), tool, arguments)
    assert not result.ok
    return result.text


def test_list_files_counts_lines_and_trouble(corpus: Path) -> None:
    assert ask(corpus, "list_files") == {
        "files": [
            {
                "file": "api.log",
                "bytes": (corpus / "api.log").stat().st_size,
                "lines": 150,
                "warnings_and_errors": 30,
                "first_time": "2026-01-05 10:00:00",
                "last_time": "2026-01-05 10:02:29",
            },
            {
                "file": "quiet.log",
                "bytes": (corpus / "quiet.log").stat().st_size,
                "lines": 1,
                "warnings_and_errors": 0,
                "first_time": "2026-01-05 10:00:00",
                "last_time": "2026-01-05 10:00:00",
            },
        ],
        "skipped": [],
    }


def test_search_groups_lines_that_differ_only_in_numbers(corpus: Path) -> None:
    answer = ask(corpus, "search", pattern="disk is full on (node-\\d)")
    assert answer["files_without_match"] == 1
    (hit,) = answer["files"]
    assert (hit["matches"], hit["distinct_shapes"]) == (30, 1)
    assert hit["values"] == [["node-0", 10], ["node-1", 10], ["node-2", 10]]
    (shape,) = hit["shapes"]
    assert (shape["first_line"], shape["last_line"], shape["count"]) == (121, 150, 30)
    assert (shape["first_time"], shape["last_time"]) == (
        "2026-01-05 10:02:00",
        "2026-01-05 10:02:29",
    )


def test_search_respects_case_when_asked(corpus: Path) -> None:
    assert ask(corpus, "search", pattern="error")["files"][0]["matches"] == 30
    assert ask(corpus, "search", pattern="error", ignore_case=False)["files"] == []


def test_read_gives_the_lines_around_a_line(corpus: Path) -> None:
    answer = ask(corpus, "read", file="api.log", line=121, before=1, after=1)
    assert [number for number, _ in answer["lines"]] == [120, 121, 122]
    assert "disk is full" in answer["lines"][1][1]


def test_histogram_shows_the_burst(corpus: Path) -> None:
    answer = ask(corpus, "histogram", file="api.log", pattern="disk is full")
    assert answer["matches"] == 30
    assert answer["seconds_per_bucket"] == 1
    assert answer["buckets"][0] == ["2026-01-05 10:02:00", 1, 121]
    assert sum(count for _, count, _ in answer["buckets"]) == 30


def test_histogram_of_a_long_time_takes_large_steps(tmp_path: Path) -> None:
    lines = [f"2026-01-{day:02d} {hour:02d}:00:00 x" for day in range(1, 29) for hour in range(24)]
    (tmp_path / "a.log").write_text("\n".join(lines))
    answer = ask(tmp_path, "histogram", file="a.log")
    assert answer["seconds_per_bucket"] == 86_400
    assert [count for _, count, _ in answer["buckets"]] == [24] * 28


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("081109 203615 148 INFO dfs.DataNode: x", "2008-11-09 20:36:15"),
        ("2015-10-18 18:01:47,978 INFO [main] x", "2015-10-18 18:01:47"),
        ("Dec 10 06:55:46 LabSZ sshd[24200]: x", "Dec 10 06:55:46"),
        ("Dec  1 06:55:46 LabSZ sshd[24200]: x", "Dec 01 06:55:46"),
        (
            "nova-api.log.1.2017-05-16_13:53:08 2017-05-16 00:00:00.008 25746 INFO x",
            "2017-05-16 00:00:00",
        ),
        ("2025-11-18T02:00:00.5Z x", "2025-11-18 02:00:00"),
        ('10.0.0.1 - - [18/Nov/2025:02:00:02 +0000] "GET /"', "2025-11-18 02:00:02"),
        ("2015-13-40 18:01:47 not a day", None),
        ("Foo 10 06:55:46 not a month", None),
        ("no time here", None),
        ("", None),
    ],
)
def test_time_stamps_of_common_formats(line: str, expected: str | None) -> None:
    clock = Clock()
    assert clock.show(clock.read(line)) == expected


def test_a_format_without_a_year_goes_on_after_new_year() -> None:
    clock = Clock()
    december, january = clock.read("Dec 31 23:59:59 a"), clock.read("Jan  1 00:00:01 a")
    assert december is not None
    assert january is not None
    assert (january - december).total_seconds() == 2


def test_quote_tells_true_citations_from_false_ones(corpus: Path) -> None:
    claims = [
        {"file": "api.log", "line": 121, "quote": "disk  is full"},
        {"file": "api.log", "line": 1, "quote": "disk is full"},
        {"file": "api.log", "line": 9_999, "quote": "x"},
        {"file": "no.log", "line": 1, "quote": "x"},
    ]
    found = ask(corpus, "quote", claims=claims)["quotes"]
    assert [quote["found"] for quote in found] == [True, False, False, False]
    assert found[0]["text"] == "2026-01-05 10:02:00,000 ERROR disk is full on node-0"


# Bad input.


@pytest.mark.parametrize(
    ("tool", "arguments", "complaint"),
    [
        ("delete", {}, "there is no tool 'delete'"),
        ("search", {}, "needs the argument 'pattern'"),
        ("search", {"pattern": "("}, "not a valid Python regular expression"),
        ("search", {"pattern": ""}, "1 to 500 characters"),
        ("search", {"pattern": "x" * 501}, "1 to 500 characters"),
        ("search", {"pattern": 7}, "pattern must be str"),
        ("search", {"pattern": "x", "colour": "red"}, "no argument 'colour'"),
        ("search", {"pattern": "x", "shapes": True}, "shapes must be int"),
        ("search", {"pattern": "x", "shapes": 999}, "between 0 and 20"),
        ("search", {"pattern": "x", "file": "../secret"}, "no file '../secret'"),
        ("read", {"file": "/etc/passwd", "line": 1}, "no file '/etc/passwd'"),
        ("read", {"file": "api.log", "line": 0}, "line counts from 1"),
        ("read", {"file": "api.log", "line": 151, "before": 0}, "150 lines were read"),
        ("read", {"file": "api.log", "line": 1, "after": 10**9}, "between 0 and 40"),
        ("quote", {"claims": [{"file": "api.log"}]}, "objects with file, line and quote"),
        ("quote", {"claims": ["api.log"]}, "objects with file, line and quote"),
    ],
)
def test_wrong_arguments_are_answered_in_words(
    corpus: Path, tool: str, arguments: dict[str, Any], complaint: str
) -> None:
    assert complaint in refusal(corpus, tool, **arguments)


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


def test_every_answer_fits_and_stays_json(tmp_path: Path) -> None:
    for n in range(300):
        lines = [
            f"2026-01-01 00:00:00 ERROR {'abcdefgh'[k] * 200} \u00e9\u00e9\n" for k in range(8)
        ]
        (tmp_path / f"{n:03d}.log").write_text("".join(lines) * 20)
    for tool, arguments in (
        ("list_files", {}),
        ("search", {"pattern": "ERROR", "shapes": 20}),
        ("search", {"pattern": "nothing like it"}),
        ("search", {"pattern": "(.*)", "shapes": 20}),
        ("read", {"file": "000.log", "line": 80, "before": 40, "after": 40}),
    ):
        result = run_tool(str(tmp_path), tool, arguments)
        assert result.ok
        assert len(result.text) <= 8_000
        json.loads(result.text)
