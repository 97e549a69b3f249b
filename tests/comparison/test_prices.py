"""The reader's calculation: every price dated and sourced, every input used, the sums right."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from pydantic import ValidationError

from comparison.arms import ARMS, find_arm
from comparison.evidence import Case, Load
from comparison.measures import measure, pool
from comparison.measures.overhead import HEARTBEAT
from comparison.meters import ACTION, WRITES
from comparison.page.advice import advice, figures
from comparison.prices import Input, inputs
from comparison.report import ArmResult
from comparison.results import judged
from tests.service.browser import ARGUMENTS, CHROMIUM

from .planted import Planted


@pytest.fixture
def measured() -> list[ArmResult]:
    """Both arms of the honest campaign; Temporal's server counted ten actions for its one twin."""
    own, other = Planted().case("hand_rolled"), Planted().case("temporal+tuned")
    load = Load(window="twin", seconds=5.0, counts={WRITES: 20.0, ACTION + "x": 10.0})
    evidence = other.evidence.model_copy(update={"loads": (load,)})
    return [judged([own]), judged([Case(evidence=evidence, calls=other.calls)])]


def test_a_price_without_its_day_is_refused() -> None:
    with pytest.raises(ValidationError, match="a source goes with the day"):
        Input(name="million", label="a million", value=50, source="somewhere")


def test_every_input_is_used_and_none_is_missing() -> None:
    script = files("comparison.page").joinpath("advice.js").read_text()
    assert set(re.findall(r'read\("(\w+)"\)', script)) == {entry.name for entry in inputs()}


def test_the_reader_begins_with_heartbeats_of_production_not_of_the_test() -> None:
    [beat] = [entry for entry in inputs() if entry.name == "beat"]
    assert beat.value == find_arm("temporal").gap > find_arm("temporal+tuned").gap
    assert "0.8 of a heartbeat timeout of 30 s" in beat.origin


def test_heartbeats_are_apart_from_the_other_actions() -> None:
    case = Planted().case("temporal+tuned")
    counts = {ACTION + "x": 30.0, HEARTBEAT: 20.0}
    load = Load(window="twin", seconds=5.0, counts=counts)
    evidence = case.evidence.model_copy(update={"loads": (load,)})
    found = figures(measure(Case(evidence=evidence, calls=case.calls)))
    assert found["actions"] + found["heartbeats"] == sum(
        n for name, n in counts.items() if name.startswith(ACTION)
    )
    assert found["heartbeats"] == 20.0


def test_a_price_shows_its_source_and_its_day_and_the_others_are_said_to_be_placeholders(
    measured: list[ArmResult],
) -> None:
    page = advice(measured)
    placeholders, prices = page.split("<fieldset>")[1:]
    assert "placeholders, not findings" in placeholders
    assert 'id="in-hour"' in placeholders
    assert 'id="in-million"' in prices
    assert "docs.temporal.io/cloud/pricing, read 2026-11-29" in prices


def test_the_expected_cost_of_many_deaths_is_a_mean() -> None:
    slow = Planted()
    slow.records = slow.records[:8]  # up to the call that A's death aborted
    slow.call("run-0", "1.0", 2, "B", at=11.0, ends=11.1)
    found = pool([measure(Planted().case()), measure(slow.case())])
    assert [r.takeover for r in found.after("kill")] == pytest.approx([1.995, 8.995])
    assert figures(found)["stood"] == pytest.approx(5.495)


def test_a_server_with_settings_of_its_own_is_not_on_temporal_cloud() -> None:
    only = {arm: figures(measure(Planted().case(arm)))["cluster_only"] for arm in ARMS}
    assert [arm for arm, alone in only.items() if alone] == ["temporal+server"]


def failed() -> ArmResult:
    """The story's arm, where a zombie wrote what its next owner had to write."""
    planted = Planted()
    planted.write("run-1", "1.0", 1, "C", at=13.1)
    return judged([planted.case("story")])


def test_what_an_arm_broke_and_what_it_never_promised_is_said_beside_the_advice(
    measured: list[ArmResult],
) -> None:
    page = advice([*measured, failed()])
    assert "story broke INV-FENCE: not recommended, whatever it costs." in page
    assert "temporal+tuned does not promise INV-TRUST, INV-FAIR, INV-BLAME." in page
    assert "hand_rolled broke" not in page


def shown(measured: list[ArmResult], place: Path, **numbers: float | str) -> str:
    """What the page says to a reader who has changed these numbers."""
    page = advice(measured)
    for name, number in numbers.items():
        page, found = re.subn(rf'(id="in-{name}"[^>]*value=")[^"]*', rf"\g<1>{number}", page)
        assert found == 1, name
    file = place / "advice.html"
    file.write_text(f"<!doctype html><title>advice</title>{page}")
    command = [str(CHROMIUM), *ARGUMENTS, "--dump-dom", file.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    return dom[dom.index('id="unread"') : dom.index("What would change it beyond")]


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
def test_the_sums_follow_the_readers_numbers(measured: list[ArmResult], tmp_path: Path) -> None:
    numbers = {"runs": 1000, "calling": 100, "plan": 10, "cloud": 0}
    # 1,000 runs a day of 10 actions at $50 a million, and a tenth of that for the plan.
    silent = shown(measured, tmp_path, **numbers, beat=0)
    assert f"${365_000 * 10 * 50 / 1e6 * 1.1:,.0f}" in silent
    assert "Temporal Cloud (Developer plan)" in silent
    # Two steps' first heartbeats, and one more for each 20 of 100 seconds.
    beating = shown(measured, tmp_path, **numbers, beat=20)
    assert f"${365_000 * (10 + 2 + 5) * 50 / 1e6 * 1.1:,.0f}" in beating
    at_the_tests_rate = 365_000 * (10 + 2 + 200) * 50 / 1e6 * 1.1
    assert f"every 0.5 s, as this test set them, the bill would be ${at_the_tests_rate:,.0f}" in (
        beating
    )
    # 2.5 million a month are included in Business, 5 at the first price, the others at the next.
    many = shown(measured, tmp_path, **{**numbers, "runs": 90_000}, beat=20)
    beyond = 365 / 12 * 0.09 * 17 - 2.5
    assert f"${12 * (5 * 50 + (beyond - 5) * 45 + 500):,.0f}" in many, "$500 is the least"
    assert "Temporal Cloud (Business plan)" in many


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
def test_the_advice_turns_with_the_numbers(measured: list[ArmResult], tmp_path: Path) -> None:
    costly = shown(measured, tmp_path, own=1000)
    assert "With these numbers temporal+tuned" in costly
    free = shown(measured, tmp_path, own=0, database=0)
    assert "With these numbers hand_rolled is the cheapest" in free


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
def test_what_is_taken_as_nothing_is_said_to_be(measured: list[ArmResult], tmp_path: Path) -> None:
    assert "taken as 0" not in shown(measured, tmp_path)
    wrong = shown(measured, tmp_path, crashes=-5, runs="")
    assert (
        "taken as 0: investigations a day; worker deaths a day: deployments, spot machines, memory."
    ) in wrong
    assert "$-" not in wrong


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
def test_recovery_is_of_the_heartbeats_that_are_billed(
    measured: list[ArmResult], tmp_path: Path
) -> None:
    # A dollar for each second: one death a day of one run, $3,600 for an hour of standing still.
    dollars = {"crashes": 1, "hand": 1, "waiting": 3600, "calling": 1000}
    arm = find_arm("temporal+tuned")
    as_tested = figures(measured[1].measures)["stood"]
    assert f"<td>${365 * as_tested:,.0f}</td>" in shown(measured, tmp_path, **dollars, beat=arm.gap)
    production = replace(arm, timeout=30, gap=24).middle("kill")
    said = shown(measured, tmp_path, **dollars, beat=24)
    assert f"<td>${365 * production:,.0f}, predicted</td>" in said
    # Two calls of a second each beat only when they begin.
    said = shown(measured, tmp_path, **{**dollars, "calling": 2}, beat=24)
    assert f"<td>${365 * (production + 12 - 0.5):,.0f}, predicted</td>" in said
    unkilled = [replace(r, measures=replace(r.measures, recoveries=())) for r in measured]
    said = shown(unkilled, tmp_path, **{**dollars, "crashes": 4}, beat=arm.gap)
    for name in ("hand_rolled", "temporal+tuned"):
        assert f"<td>${1460 * find_arm(name).middle('kill'):,.0f}, predicted</td>" in said
    silent = shown(measured, tmp_path, **dollars, beat=0)
    assert "<td>not known</td>" in silent
    assert "Only hand_rolled is left to recommend" in silent


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
def test_the_heartbeats_spoken_of_are_those_of_the_arm_that_is_cheapest_on_the_cloud(
    measured: list[ArmResult], tmp_path: Path
) -> None:
    own, tuned = measured
    stock = replace(tuned, arm="temporal", measures=replace(tuned.measures, arm="temporal"))
    waiting = {"crashes": 100, "waiting": 1000, "calling": 100}
    often = shown([own, stock, tuned], tmp_path, **waiting, beat=0.5)
    assert "temporal+tuned on Temporal Cloud, on its Developer plan: heartbeats every 0.5" in often
    assert "s (measured), as this test set them." in often
    seldom = shown([stock, tuned], tmp_path, **waiting, beat=12)
    assert "every 24 s, as this test set them, the bill would be" in seldom.partition("; ")[2]
    assert "every 0.5 s, as this test" not in seldom


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
def test_an_arm_that_broke_a_rule_is_recommended_at_no_price(
    measured: list[ArmResult], tmp_path: Path
) -> None:
    nothing = {"crashes": 0, "own": 0, "database": 0}
    said = shown([failed(), *measured], tmp_path, **nothing)
    assert '<span class="FAIL">✗</span> story' in said
    assert "With these numbers hand_rolled is the cheapest" in said
    alone = shown([failed()], tmp_path, **nothing)
    assert "None is recommended: each broke a rule" in alone


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
def test_all_that_cost_the_same_are_named_and_none_is_the_cheapest_by_nothing(
    measured: list[ArmResult], tmp_path: Path
) -> None:
    own, _ = measured
    twice = [replace(own, measures=replace(own.measures, arm="hand_rolled+crash")), *measured]
    same = {"crashes": 0, "database": 0, "servers": 0, "cluster": 16}
    said = shown(twice, tmp_path, **same, cloud=1000)
    assert (
        "hand_rolled+crash, hand_rolled and temporal+tuned on a cluster of your own cost about "
        "the same, $19,200 a year"
    ) in said
    assert "by $0" not in shown(twice, tmp_path, crashes=0, own=0, database=0)
