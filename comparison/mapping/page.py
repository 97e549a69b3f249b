"""The mapping as one self-contained web page: no script, no font, no request to anybody."""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path
from string import Template

from comparison.mapping.concept import Concept, Theme, concepts, themes
from comparison.mapping.diagrams import STATES, WHOLE
from comparison.mapping.recording import Recording, Side, stored
from comparison.mapping.references import resolve
from comparison.mapping.screen import NAMES, plain, provenance, rung_line
from comparison.mapping.timeline import lines

_TEMPLATE = Path(__file__).with_name("page.html")


def write_page(path: Path) -> Path:
    """Write the page to `path` and return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page())
    return path


def page() -> str:
    """The whole page."""
    first = stored(concepts()[0].evidence.scenario)
    return Template(_TEMPLATE.read_text()).substitute(
        count=len(concepts()),
        provenance=_text(f"First scenario {provenance(first)}." if first else ""),
        whole=html.escape(WHOLE),
        states=html.escape(STATES),
        tables="\n".join(_table(theme) for theme in themes()),
        concepts="\n".join(_article(concept) for concept in concepts()),
    )


def _table(theme: Theme) -> str:
    rows = "\n".join(_row(concept) for concept in theme.concept)
    return f"""<h2>{_text(theme.title)}</h2>
<table><thead><tr><th>concept</th><th>by hand</th><th>Temporal</th></tr></thead>
<tbody>{rows}</tbody></table>"""


def _row(concept: Concept) -> str:
    def cell(side: str, name: str, text: str) -> str:
        better = ' class="better"' if concept.better == side else ""
        return f'<td data-side="{name}"{better}>{_text(text)}</td>'

    return (
        f'<tr><td><a href="#{concept.id}">{_text(concept.title)}</a></td>'
        f"{cell('table', 'by hand', concept.by_hand.short)}"
        f"{cell('temporal', 'Temporal', concept.temporal.short)}</tr>"
    )


def _article(concept: Concept) -> str:
    recording = stored(concept.evidence.scenario)
    guard = concept.broken.guard
    broken = stored(f"broken-{guard}") if guard else None
    return f"""<article id="{concept.id}">
<h3>{_text(concept.title)}</h3>
<p class="question">{_text(concept.question)}</p>
<div class="broken"><p>{_text(concept.broken.version)}</p>
<p class="soft">{_text(concept.broken.failure)}</p></div>
<div class="sides">{_by_hand(concept)}{_temporal(concept)}</div>
<p class="verdict">{_text(concept.verdict)}</p>
{_facts(_belongings(concept))}
{_evidence("What was seen", recording, concept) if recording else ""}
{_evidence("The same without the guard", broken, concept) if broken else ""}
<details><summary>Sources</summary><ul class="sources">
{"".join(f'<li><a href="{_text(url)}">{_text(url)}</a></li>' for url in concept.sources)}
</ul></details>
</article>"""


def _by_hand(concept: Concept) -> str:
    side, place = concept.by_hand, resolve(concept.by_hand.reference)
    statement = f"<pre>{_text(place.text.strip())}</pre>" if place.text else ""
    facts = _facts([("statement", side.statement), ("where", str(place))])
    shown = f"<details><summary>The statement</summary>{statement}</details>" if statement else ""
    return f"""<section class="hand"><h4>by hand</h4><p>{_text(side.long)}</p>{facts}
<p class="lacks soft">Does not give you: {_text(side.lacks)}</p>{shown}</section>"""


def _temporal(concept: Concept) -> str:
    side = concept.temporal
    facts = _facts(
        [
            ("API", side.api),
            ("setting", side.setting),
            ("state kept by", side.owner),
            ("where", str(resolve(side.reference))),
        ]
    )
    return f"""<section class="temporal"><h4>Temporal</h4><p>{_text(side.long)}</p>{facts}
<p class="lacks soft">Does not give you: {_text(side.lacks)}</p></section>"""


def _belongings(concept: Concept) -> Iterable[tuple[str, str]]:
    yield "holds", ", ".join(concept.invariants)
    if concept.rungs:
        yield "ladder", " · ".join(rung_line(number) for number in concept.rungs)
    if concept.broken.guard:
        yield "try it", f"two-workers break {concept.broken.guard}"
    yield "cookbook", concept.cookbook


def _evidence(title: str, recording: Recording, concept: Concept) -> str:
    sides = "".join(_side(side, concept) for side in recording.sides)
    return f"""<details><summary>{title}: {_text(recording.title)}</summary>
<p class="soft">{_text(provenance(recording))}</p><div class="sides">{sides}</div></details>"""


def _side(side: Side, concept: Concept) -> str:
    times = "".join(
        f'<li class="{line.place}"><time>{line.t:.2f}</time><span>{_text(line.text)}</span></li>'
        for line in lines(side, concept)
    )
    checks = "".join(
        f'<li class="{"ok" if c.holds else "no"}">{_text(f"{c.invariant} {c.says}")}'
        f"{'' if c.holds else _text(f' (found: {c.found})')}</li>"
        for c in side.checks
    )
    style = "hand" if side.engine == "hand_rolled" else "temporal"
    return f"""<section class="{style}"><h4>{NAMES[side.engine]}</h4><ol class="time">{times}</ol>
{_facts((name, plain(value)) for name, value in side.facts.items())}
<ul class="checks">{checks}</ul></section>"""


def _facts(pairs: Iterable[tuple[str, str]]) -> str:
    inner = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in pairs)
    return f"<dl>{inner}</dl>"


def _text(value: str) -> str:
    """Escaped, with `backticks` as code."""
    parts = html.escape(value.strip()).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
