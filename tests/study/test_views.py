"""The table, the screens and the page: everything is on them, and it fits."""

from __future__ import annotations

import io
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from comparison.mapping.concept import Concept, concepts
from comparison.mapping.page import write_page
from comparison.mapping.recording import stored
from comparison.mapping.screen import concept_screen
from comparison.mapping.table import mapping_table
from tests.service.browser import ARGUMENTS, CHROMIUM

WIDTHS = pytest.mark.parametrize("width", [80, 120])
_VOID = {"meta", "br", "hr", "link", "img", "input"}


def printed(what: RenderableType, width: int) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(what)
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


@WIDTHS
def test_the_table_fits_and_shows_everything(width: int) -> None:
    text = printed(mapping_table(width), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…\n" not in text, "a cell was cut"
    words = text.replace("\n", " ")
    for concept in concepts():
        assert concept.id in words
        assert concept.title.split()[0] in words


@WIDTHS
@pytest.mark.parametrize("concept", concepts(), ids=lambda concept: concept.id)
def test_a_screen_fits_and_shows_everything(concept: Concept, width: int) -> None:
    recording = stored(concept.evidence.scenario)
    assert recording is not None
    guard = concept.broken.guard
    broken = stored(f"broken-{guard}") if guard else None
    text = printed(concept_screen(concept, recording, broken, width=width), width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    assert concept.question in words
    assert concept.invariants[0] in words
    assert "SIGKILL" in words or "starts" in words, "no timeline"
    if broken is not None:
        assert "FAILS" in words, "the broken version is convicted on the screen"


class _Page(HTMLParser):
    """Open elements, ids, and everything that a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {key: value or "" for key, value in attrs}
        if "id" in named:
            self.ids.append(named["id"])
        if tag == "a":
            self.links.append(named["href"])
        self.fetched += [named[key] for key in ("src", "data") if key in named]
        if tag in ("link", "script", "iframe"):
            self.fetched.append(tag)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone(tmp_path: Path) -> None:
    path = write_page(tmp_path / "deep" / "mapping.html")
    page = _Page()
    page.feed(path.read_text())
    assert page.open == [], "an element is not closed"
    assert page.fetched == [], "the page asks nobody for anything"
    assert page.ids == [concept.id for concept in concepts()]
    assert {link for link in page.links if link.startswith("#")} == {f"#{i}" for i in page.ids}


# The page in a narrow window with everything opened, and what sticks out of it there. A drawing
# may: it scrolls by itself.
_NARROW = """
<iframe src="mapping.html" style="width: 400px; height: 800px; border: 0"></iframe><ol></ol>
<script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument, width = page.documentElement.clientWidth;
  for (const part of page.querySelectorAll("details")) part.open = true;
  for (const part of page.querySelectorAll("body, body *:not(pre)")) {
    const beyond = part.getBoundingClientRect().right > width + 1;
    const inside = part.clientWidth && part.scrollWidth > part.clientWidth + 1;
    if (beyond || inside) {
      const line = document.querySelector("ol").appendChild(document.createElement("li"));
      line.textContent = `${part.tagName}: ${part.textContent.slice(0, 60)}`;
    }
  }
  document.title = `looked at ${width}`;
};
</script>
"""


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
def test_nothing_sticks_out_of_a_narrow_page(tmp_path: Path) -> None:
    write_page(tmp_path / "mapping.html")
    frame = tmp_path / "narrow.html"
    frame.write_text(f"<!doctype html><title></title>{_NARROW}")
    options = ["--allow-file-access-from-files", "--dump-dom"]
    command = [str(CHROMIUM), *ARGUMENTS, *options, frame.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert re.search(r"<title>looked at \d{3}</title>", dom), dom[:300]
    assert re.findall(r"<li>(.*?)</li>", dom, re.DOTALL) == []
