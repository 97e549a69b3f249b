"""The log tools: right answers on ordinary logs, and readable refusals on everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from investigation.logs.times import Clock
from investigation.tools import run_tool
from tests.investigation.conftest import ask, refusal


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
