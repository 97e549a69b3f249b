"""The reader's calculation: every price dated and sourced, every input used, the sums right."""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from comparison.evidence import Case, Load
from comparison.measures import measure, pool
from comparison.meters import ACTION, WRITES
from comparison.page.advice import advice, figures
from comparison.prices import Input, inputs
from tests.service.browser import CHROMIUM, browser_page

from .planted import Planted


@pytest.fixture
def measured() -> list[Any]:
    """Both arms of the honest campaign; Temporal's server counted ten actions for its one twin."""
    own, other = Planted().case("hand_rolled"), Planted().case("temporal+tuned")
    load = Load(window="twin", seconds=5.0, counts={WRITES: 20.0, ACTION + "x": 10.0})
    evidence = other.evidence.model_copy(update={"loads": (load,)})
    return [measure(own), measure(Case(evidence=evidence, calls=other.calls))]


def test_a_price_without_its_day_is_refused() -> None:
    with pytest.raises(ValidationError, match="a source goes with the day"):
        Input(name="million", label="a million", value=50, source="somewhere")


def test_every_input_is_used_and_none_is_missing() -> None:
    script = files("comparison.page").joinpath("advice.js").read_text()
    assert set(re.findall(r'read\("(\w+)"\)', script)) == {entry.name for entry in inputs()}


def test_a_price_shows_its_source_and_its_day_and_the_others_are_said_to_be_placeholders(
    measured: list[Any],
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


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
@pytest.mark.skipif(find_spec("playwright") is None, reason="no playwright: see [browser]")
async def test_the_sums_follow_the_readers_numbers(measured: list[Any], tmp_path: Path) -> None:
    page_file = tmp_path / "advice.html"
    page_file.write_text(f"<!doctype html><title>advice</title>{advice(measured)}")
    async with browser_page(page_file.as_uri(), width=1280, first="#year tr") as page:
        for name, value in {"runs": 1000, "calling": 0, "plan": 10, "least": 0, "cloud": 0}.items():
            await page.fill(f"#in-{name}", str(value))
        [_, cloud, _] = await page.locator("#year tr").all_inner_texts()
        # 1,000 runs a day of 10 actions at $50 a million, and a tenth of that for the plan.
        assert f"${365_000 * 10 * 50 / 1e6 * 1.1:,.0f}" in cloud
        await page.fill("#in-own", "1000")
        assert "temporal+tuned" in (await page.inner_text("#advice")).split(" is the cheapest")[0]
        await page.fill("#in-own", "0")
        await page.fill("#in-database", "0")
        assert "With these numbers hand_rolled is" in await page.inner_text("#advice")
