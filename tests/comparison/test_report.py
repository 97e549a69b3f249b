"""The report in all its forms, from evidence whose figures are known."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from rich.console import Console

from comparison.arms import ARMS
from comparison.checks import judge
from comparison.evidence import Case
from comparison.files import to_csv, to_junit
from comparison.measures import ORPHANING, measure
from comparison.page.page import to_html
from comparison.page.verdicts import in_a_line
from comparison.recovery_rows import FAULTS
from comparison.render import THEIRS, Report, to_markdown, to_terminal
from comparison.report import ArmResult, rows
from comparison.results import judged
from comparison.scene import Paid
from tests.comparison.planted import Planted
from tests.comparison.planted_crowd import PlantedCrowd

PAID = Paid(
    workers=2,
    model_calls=10,
    model_calls_needed=5,
    tokens=2000,
    tokens_needed=1000,
    micro_usd=8000,
    micro_usd_needed=4000,
)
ENVIRONMENT = {
    "python": "3.11",
    "machine": "a machine",
    "cpus": "2",
    "commit": "abc",
    "temporalio": "1",
    "psycopg": "3",
}


@pytest.fixture
def cases() -> list[Case]:
    slow = Planted()
    slow.writes = [write for write in slow.writes if write.key != "run-1/1.0"]
    return [Planted().case("hand_rolled"), slow.case("temporal+tuned")]


@pytest.fixture
def report(cases: list[Case]) -> Report:
    results = [
        ArmResult(case.evidence.arm, tuple(judge(case)), measure(case), {"fsync": "on"}, 0.25)
        for case in cases
    ]
    return Report(7, ENVIRONMENT, PAID, results, 120.0)


def cell(report: Report, label: str) -> tuple[str, ...]:
    [row] = [row for row in rows(report.results) if row.label.strip() == label]
    return row.cells


def test_a_zero_count_carries_what_it_rules_out(report: Report) -> None:
    assert cell(report, "lost") == ("0 of 4 (≤ 52.7 %)",) * 2


def test_what_was_not_put_to_the_test_is_said_not_to_be(report: Report) -> None:
    assert cell(report, "writes accepted, of those tried") == (
        ("not tried: no late record is known of",) * 2
    )


def test_no_call_after_a_cancellation_is_said_to_be_that(report: Report) -> None:
    assert cell(report, "cancel a run at work: to the last call begun") == (
        ("no call begun after the request (n=1)",) * 2
    )


def test_a_small_sample_has_no_p95(report: Report) -> None:
    [kill, pause] = [row for row in rows(report.results) if row.label.strip() == "p95"]
    assert kill.cells == pause.cells == ("n too small (1 < 59)",) * 2


def test_the_terminal_opens_with_the_scene_and_says_whose_engine_it_is(report: Report) -> None:
    console = Console(record=True, width=100, file=io.StringIO())
    to_terminal(report, console)
    text = " ".join(console.export_text().split())
    assert "10 model calls were paid where 5 were needed" in text
    assert "The authors of this report wrote its faults and its checks, and of what" in text
    assert text.index("Verdicts") < text.index("Side by side") < text.index("does not show")


def test_the_authors_are_named_for_the_arms_that_are_compared(report: Report) -> None:
    ours, theirs = report.results
    story = replace(ours, arm="story")
    both = replace(report, results=[ours, theirs]).header[0]
    assert "hand_rolled, all of it; the workflow, activities and settings on" in both
    without = replace(report, results=[story, theirs]).header[0]
    assert "hand_rolled" not in without
    assert "story, an engine over the SQL that the story gives; the workflow" in without


def test_every_engine_has_its_authors_named() -> None:
    assert THEIRS.keys() == {arm.engine for arm in ARMS.values()}


def test_the_markdown_has_a_cell_for_each_arm(report: Report) -> None:
    lines = [line for line in to_markdown(report).splitlines() if line.startswith("| lost")]
    assert lines == ["| lost | 0 of 4 (≤ 52.7 %) | 0 of 4 (≤ 52.7 %) |"]


class Page(HTMLParser):
    """Collects whatever the page would load or leads to; fails on a tag left open."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]
        self.anchors |= {f"#{value}" for name, value in attrs if name == "id"}
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass


def test_the_page_is_well_formed_and_loads_nothing(report: Report, cases: list[Case]) -> None:
    html = to_html(report, {case.evidence.arm: [case] for case in cases})
    page = Page()
    page.feed(html)
    assert page.open == []
    headings = re.findall(r"<h2 id=.*?>(.*?)</h2>", html)
    assert headings[:3] == ["Verdicts", "Chosen beforehand", "What it means for you"]
    assert headings[-2] == "What this does not show"
    assert len(page.loads) == len(headings) - 1, "the contents lead to all that follows them"
    assert set(page.loads) <= page.anchors


def test_the_page_opens_with_who_broke_what(report: Report) -> None:
    planted = Planted()
    planted.write("run-1", "1.0", 1, "C", at=13.1)
    results = [judged([planted.case("story")]), *report.results]
    said = in_a_line(results)
    assert said.startswith("story broke INV-FENCE. Nothing that was promised was seen broken on")
    html = to_html(replace(report, results=results), {})
    assert html.index(said) < html.index("<h2")


def test_of_more_than_two_arms_pairs_and_verdicts_are_folded(report: Report) -> None:
    two = to_html(report, {})
    third = judged([Planted().case("story")])
    three = to_html(replace(report, results=[third, *report.results]), {})
    assert "<details>" not in two
    assert three.count("<details><summary>") == 3 + 3
    assert "<summary>hand_rolled and temporal+tuned</summary>" in three
    assert '<summary><strong>story</strong> <span class="' in three


def test_the_page_carries_the_measured_figures_into_its_arithmetic(
    report: Report, cases: list[Case]
) -> None:
    html = to_html(report, {case.evidence.arm: [case] for case in cases})
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', html)
    assert found is not None
    own, other = json.loads(found[1])
    assert (own["arm"], other["arm"]) == ("hand_rolled", "temporal+tuned")
    assert own["begun"] == {"sent": 100, "received": 10}, "two duplicates, two orphans"
    assert own["answered"] == {"sent": 50, "received": 5}
    assert (own["gap"], own["actions"]) == (0.5, 0), "a table of one's own is not billed by action"


def test_the_spreadsheet_is_the_table(report: Report) -> None:
    sheet = list(csv.reader(io.StringIO(to_csv(report.results))))
    assert sheet[0] == ["section", "row", "arm", "value", "low", "high", "n", "text"]
    assert len(sheet) == 1 + 2 * len(rows(report.results))
    wanted = ["changed hands: median [95 % CI]", "hand_rolled"]
    [kill, _] = [line for line in sheet if line[1:3] == wanted]
    assert float(kill[3]) == pytest.approx(1.895)
    assert kill[4:7] == ["", "", "1"], "one fault has no interval"


def test_a_build_server_sees_a_violation_as_a_failure_and_unknown_as_an_error() -> None:
    planted = Planted()
    planted.write("run-1", "1.0", 1, "C", at=13.1)
    planted.cancellations = []
    case = PlantedCrowd().beside(planted)
    result = ArmResult("hand_rolled", tuple(judge(case)), measure(case), {})
    suite = ElementTree.fromstring(to_junit([result]))
    figures = {e.get("name"): e.get("value") for e in suite.iter("property")}
    assert figures["Runs: lost"] == "0 of 4 (≤ 52.7 %)"
    assert [e.get("name") for e in suite.iter("testcase") if e.find("failure") is not None] == [
        "INV-FENCE"
    ]
    assert [e.get("name") for e in suite.iter("testcase") if e.find("error") is not None] == [
        "INV-CANCEL"
    ]


def test_what_was_not_promised_is_a_skipped_test_and_said_first_everywhere() -> None:
    case = PlantedCrowd().beside(Planted(), "temporal+tuned")
    result = ArmResult("temporal+tuned", tuple(judge(case)), measure(case), {})
    suite = ElementTree.fromstring(to_junit([result]))
    figures = {e.get("name"): e.get("value") for e in suite.iter("property")}
    assert figures["Runs: lost"] == "0 of 4 (≤ 52.7 %)"
    assert [e.get("name") for e in suite.iter("testcase") if e.find("skipped") is not None] == [
        *("INV-TRUST", "INV-FAIR", "INV-BLAME")
    ]
    report = Report(7, ENVIRONMENT, PAID, [result], 120.0)
    shown = Console(file=io.StringIO(), record=True, width=200)
    to_terminal(report, shown)
    said = "not promised, since its gate grants first come, first served"
    assert said in shown.export_text()
    assert said in to_html(report, {"temporal+tuned": [case]})


def test_the_four_measures_chosen_beforehand_come_first(report: Report) -> None:
    first = rows(report.results)[:4]
    assert {row.section for row in first} == {"Chosen beforehand"}
    assert rows(report.results)[4].section != "Chosen beforehand"
    assert cell(report, "duplicate calls per orphaned run") == ("1.00 (2 over 2)",) * 2


def test_the_causes_add_up_to_the_duplicates_above_them() -> None:
    planted = Planted()
    for begun, worker in ((22.0, "A"), (22.5, "B")):
        planted.call("run-7", "9.0", 1, worker, at=begun, ends=begun + 0.1, kind="report")
    case = planted.case()
    table = rows([ArmResult("hand_rolled", tuple(judge(case)), measure(case), {})])
    paid = {row.label: row.figures[0].value for row in table if row.section == "Paid twice"}
    kinds = ("duplicate model calls", "duplicate tool calls", "reports handed in twice")
    causes = [value for label, value in paid.items() if label.startswith("  of all these")]
    assert paid["reports handed in twice"] == 1
    assert sum(causes) == sum(paid[kind] for kind in kinds) == 3


def test_money_paid_twice_stands_beside_what_the_runs_cost_that_were_hit() -> None:
    quiet, busy = Planted(), Planted()
    for second in range(22, 40):  # runs that no fault hit make the waste look no smaller
        busy.call(f"run-{second}", "0.0", 1, "B", at=second, ends=second + 0.1)
    found = [measure(planted.case()) for planted in (quiet, busy)]
    assert found[0].duplicates.micro_usd_hit == found[1].duplicates.micro_usd_hit > 0
    assert [m.duplicates_per_orphan for m in found] == [1.0, 1.0]


def test_one_arm_alone_has_no_empty_heading(report: Report, cases: list[Case]) -> None:
    alone = replace(report, results=report.results[:1])
    console = Console(record=True, width=100, file=io.StringIO())
    to_terminal(alone, console)
    shown = [console.export_text(), to_markdown(alone), to_html(alone, {"hand_rolled": cases[:1]})]
    assert not [text for text in shown if "What differs" in text]


def test_every_fault_that_takes_work_away_has_a_section() -> None:
    assert tuple(FAULTS) == ORPHANING
