"""The page in a real browser: a person breaks workers and watches who resumes the work.

Skipped where there is no Chromium (`apt-get install chromium`) or no playwright
(`pip install 'two-workers[browser]'`).
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

import pytest

from tests.service.browser import CHROMIUM, browser_page, served
from tests.service.client import ACME, KEYS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(240),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.skipif(
        find_spec("playwright") is None,
        reason="no playwright: pip install 'two-workers[browser]'",
    ),
]

ENGINES = pytest.mark.parametrize("engine", ["hand_rolled", "temporal"])
OWNER = ".workers li.running:has(.owns:not([hidden]))"


async def took_over(page: Any, times: int) -> None:
    """Wait until the page has told of so many takeovers."""
    await page.wait_for_function(
        "times => document.querySelector('.owners').textContent.split('took over').length > times",
        arg=times,
    )


@ENGINES
async def test_a_person_kills_and_pauses_owners_and_the_run_is_resumed(engine: str) -> None:
    async with (
        served("--demo", "--engine", engine, "--pace", "1") as address,
        browser_page(address, width=1280) as page,
    ):
        # By keyboard alone: into the field, type, and Enter starts the run.
        await page.get_by_label("Text").focus()
        await page.keyboard.type("Why do checkouts fail?")
        await page.keyboard.press("Enter")
        await page.locator("#steps tbody tr").first.wait_for()

        await page.locator(OWNER).get_by_role("button", name=re.compile("^Kill worker")).click()
        await took_over(page, 1)
        assert await page.locator("li.ended").count() == 1

        name = await page.locator(OWNER).locator("code").inner_text()
        zombie = page.locator(".workers li", has=page.locator(f"code:text-is('{name}')"))
        await zombie.get_by_role("button", name=re.compile("^Pause")).click()
        await took_over(page, 2)
        await zombie.get_by_role("button", name=re.compile("^Let it go on")).click()

        await page.get_by_role("heading", name="Result").wait_for()
        assert await page.locator(".badge.succeeded").count() == 1
        assert "findings" in await page.locator(".result pre").inner_text()
        places = await page.locator("#steps tbody th").all_inner_texts()
        assert len(places) == len(set(places)) > 5  # every step was recorded once
        workers = set(await page.locator("#steps tbody td:nth-child(5)").all_inner_texts())
        assert len(workers) >= 2
        if engine == "hand_rolled":  # a worker that lost its lease stops, and says so
            await zombie.locator("summary").click()
            assert "lost" in await zombie.locator("pre").inner_text()


@ENGINES
async def test_a_person_approves_on_a_narrow_screen(engine: str) -> None:
    app = "examples.review_documents:APP"
    arguments = ("--demo", "--engine", engine, "--app", app, "--pace", "0", "--workers", "1")
    async with served(*arguments) as address, browser_page(address, width=390) as page:
        await page.get_by_label("Path").fill("examples/documents")
        await page.get_by_role("button", name="Start", exact=True).click()
        await page.get_by_label("Your name").fill("Ada")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
        await page.get_by_role("button", name="Approve").click()

        await page.get_by_role("heading", name="Result").wait_for()
        assert '"by": "Ada"' in await page.locator(".result pre").inner_text()
        await page.get_by_role("link", name="All runs").click()
        await page.get_by_role("heading", name="All runs").wait_for()
        await page.locator("tbody tr", has_text="succeeded").wait_for()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_a_person_cancels_a_run_and_hears_of_it() -> None:
    arguments = ("--demo", "--engine", "hand_rolled", "--pace", "3", "--workers", "1")
    async with served(*arguments) as address, browser_page(address, width=1280) as page:
        await page.get_by_label("Text").fill("Why?")
        await page.get_by_role("button", name="Start", exact=True).click()
        await page.get_by_role("button", name="Cancel this run").click()
        await page.locator(".badge.cancelled").wait_for()
        await page.wait_for_function(
            "document.getElementById('announcement').textContent === 'The run is now cancelled'"
        )


async def test_the_page_asks_for_a_key_where_one_is_needed() -> None:
    arguments = ("--demo", "--engine", "hand_rolled", "--workers", "1")
    async with (
        served(*arguments, SERVICE_API_KEYS=KEYS) as address,
        browser_page(address, width=390, first="dialog[open]") as page,
    ):
        dialog = page.get_by_role("dialog", name="API key")
        await dialog.get_by_label("Key").fill("not-the-key")
        await page.keyboard.press("Enter")
        await dialog.get_by_text("does not know this key").wait_for()
        await dialog.get_by_label("Key").fill(ACME)
        await page.keyboard.press("Enter")
        await page.get_by_text("as acme").wait_for()
        assert ACME not in await page.content()


@pytest.mark.parametrize("width", [1280, 390])
async def test_everything_can_be_reached_by_keyboard_and_has_a_name(width: int) -> None:
    arguments = ("--demo", "--engine", "hand_rolled", "--workers", "1")
    async with served(*arguments) as address, browser_page(address, width=width) as page:
        await page.get_by_label("Text").fill("Why?")
        await page.keyboard.press("Enter")
        await page.locator(OWNER).wait_for()
        assert await page.evaluate("document.activeElement.tagName") == "H1"  # the new content

        reached = set()
        for _ in range(12):
            await page.keyboard.press("Tab")
            reached.add(await page.evaluate("document.activeElement.textContent"))
        assert {"Cancel this run", "Kill this worker", "Pause this worker"} <= reached

        nameless = await page.evaluate(NAMELESS)
        assert nameless == []
        structure = await page.evaluate(
            "[...document.querySelectorAll('h1, h2')].map(h => h.tagName).join(' ')"
        )
        assert re.fullmatch(r"(H2 )?H1( H2)+|H1( H2)+", structure), structure
        too_faint = await page.evaluate(FAINT)
        assert too_faint == []


NAMELESS = """
[...document.querySelectorAll('a, button, input, select, textarea, summary, meter, section, pre')]
  .filter(e => e.checkVisibility())
  .filter(e => !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby')
                 || e.labels?.length || e.textContent.trim()))
  .map(e => e.outerHTML)
"""

FAINT = """
(() => {
  const light = c => {
    const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (!c.endsWith(', 0)') && c !== 'transparent') return c;
    }
    return 'rgb(255, 255, 255)';
  };
  return [...document.querySelectorAll('body *')]
    .filter(e => e.checkVisibility())
    .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
    .map(e => {
      const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
      return [(a + 0.05) / (b + 0.05), e.textContent.slice(0, 40)];
    })
    .filter(([ratio]) => ratio < 4.5);
})()
"""
"""Texts whose contrast is below what WCAG AA asks for."""
