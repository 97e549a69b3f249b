"""`report.html`: one page, from the outcome in a line to how to repeat it all.

Verdicts and the four measures chosen beforehand come first, then what they mean for the reader;
every other figure follows. What is long is folded away and opened for printing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import groupby

from comparison.arms import find_arm
from comparison.figures import Row
from comparison.measures import CAUSES, ORPHANING
from comparison.page.advice import advice
from comparison.page.charts import COLOURS, Curve, bars, recovery_curves
from comparison.page.grid import Arms, crash_points
from comparison.page.timeline import LEGEND, caption, timeline, worst_run
from comparison.page.verdicts import in_a_line, verdicts
from comparison.reading import terms, warnings
from comparison.render import Report
from comparison.report import FAULTS, PRIMARY, ArmResult, by_cause, rows
from comparison.sentences import not_shown, opening, pairs

AXIS = "seconds from the fault until somebody else calls the step (it changes hands sooner)"
SHADED = (
    '<p class="small">Shaded in the colour of each arm: when the run should change hands, by the '
    "arm's settings. A dot is a run.</p>"
)
REPEAT = (
    "<p class='small'>The same experiment again: <code>two-workers replay DIR</code>. Judged again "
    "from its evidence, without running anything: <code>two-workers check DIR</code>.</p>"
)


@dataclass(frozen=True)
class Section:
    """A part of the page that the contents lead to."""

    title: str
    body: str

    @property
    def anchor(self) -> str:
        """What the contents point at."""
        return re.sub(r"\W+", "-", self.title.lower())

    def __str__(self) -> str:
        return f'<h2 id="{self.anchor}">{self.title}</h2>{self.body}'


def to_html(report: Report, arms: Arms) -> str:
    """The whole page as one string."""
    page = files("comparison.page")
    style, script = (page.joinpath(name).read_text() for name in ("page.css", "page.js"))
    first, *others = _sections(report, arms)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Two workers, seed {report.seed}</title><style>{style}</style></head><body>"
        "<h1>Two workers picked up the same investigation: what broke, and what it cost</h1>"
        f'<p class="outcome">{escape(in_a_line(report.results))}</p>'
        f'<p class="scene">{escape(opening(report.scene))}</p>'
        f'<p class="small">{escape(report.header[0])}</p>'
        f"{first}{_contents(others)}{''.join(map(str, others))}"
        f"<script>{script}</script></body></html>\n"
    )


def _sections(report: Report, arms: Arms) -> list[Section]:
    results = report.results
    table = rows(results)
    chosen = [row for row in table if row.section == PRIMARY]
    sections = [
        Section("Verdicts", verdicts(results)),
        Section(PRIMARY, _warnings(results) + _table(results, chosen) + _list(terms(results))),
        Section("What it means for you", advice(results)),
        Section("Side by side", _table(results, table[len(chosen) :])),
        Section("What differs", _differences(results)),
        Section("How long runs waited", _curves(results)),
        Section("Duplicate calls by cause", _causes(results)),
        Section("Crash points", crash_points(arms)),
        Section("The run that waited longest", _timelines(arms)),
        Section("What this does not show", _list(not_shown(results))),
        Section("Who wrote this, on what, and how to repeat it", _list(report.header) + REPEAT),
    ]
    return [section for section in sections if section.body]


def _contents(sections: Sequence[Section]) -> str:
    links = "".join(f'<li><a href="#{s.anchor}">{s.title}</a></li>' for s in sections)
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def _warnings(results: Sequence[ArmResult]) -> str:
    return "".join(f'<p class="caution">{escape(line)}</p>' for line in warnings(results))


def _table(results: Sequence[ArmResult], shown: Sequence[Row]) -> str:
    head = "".join(f"<th>{escape(result.arm)}</th>" for result in results)
    lines = []
    for section, members in groupby(shown, key=lambda row: row.section):
        if section != PRIMARY:  # which has a heading of its own
            title = f"<span>{escape(section)}</span>"
            lines.append(f'<tr class="section"><th colspan="{len(results) + 1}">{title}</th></tr>')
        for row in members:
            filled = "".join(f"<td>{escape(cell)}</td>" for cell in row.cells)
            part = ' class="part"' if row.label.startswith(" ") else ""
            lines.append(f"<tr><th{part}>{escape(row.label.strip())}</th>{filled}</tr>")
    return (
        f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _differences(results: Sequence[ArmResult]) -> str:
    """Each pair folded, if there are several; nothing for one arm alone."""
    blocks = [(who, _list(sentences, "differs")) for who, sentences in pairs(results).items()]
    if len(blocks) < 2:
        return "".join(block for _, block in blocks)
    return "".join(
        f"<details><summary>{escape(who)}</summary>{block}</details>" for who, block in blocks
    )


def _curves(results: Sequence[ArmResult]) -> str:
    parts = [SHADED]
    for kind in ORPHANING:
        if any(result.measures.takeover[kind] for result in results):
            curves = [
                Curve(
                    name=result.arm,
                    colour=colour,
                    values=[r.takeover for r in result.measures.after(kind)],
                    band=find_arm(result.arm).predict(kind),
                )
                for colour, result in zip(COLOURS, results, strict=False)
            ]
            drawn = recovery_curves(curves, AXIS)
            parts.append(f'<h3>{FAULTS[kind]}</h3><div class="wide">{drawn}</div>')
    return "".join(parts) if len(parts) > 1 else ""


def _causes(results: Sequence[ArmResult]) -> str:
    groups = [
        (cause, [float(by_cause(result.measures, cause)) for result in results]) for cause in CAUSES
    ]
    drawn = bars(groups, [result.arm for result in results], "calls")
    return f'<div class="wide">{drawn}</div>'


def _timelines(arms: Arms) -> str:
    parts = []
    for arm, cases in arms.items():
        found = worst_run(cases)
        if found is not None:
            case, wait = found
            parts.append(
                f'<h3>{escape(arm)}</h3><p class="small">{escape(caption(case, wait))}</p>'
            )
            parts.append(f'<div class="wide">{timeline(case, wait.run)}</div>')
    return "".join([*parts, LEGEND] if parts else [])


def _list(lines: Sequence[str], look: str = "small") -> str:
    return f'<ul class="{look}">' + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
