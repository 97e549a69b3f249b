"""`report.html`, from top to bottom: verdicts, table, curves, crash points, worst runs, advice."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from itertools import groupby

from comparison.arms import find_arm
from comparison.measures import CAUSES, ORPHANING
from comparison.page.advice import advice
from comparison.page.charts import COLOURS, Curve, bars, recovery_curves
from comparison.page.grid import Arms, crash_points
from comparison.page.timeline import LEGEND, timeline, worst_run
from comparison.render import MARKS, Report
from comparison.report import FAULTS, ArmResult, by_cause, rows
from comparison.sentences import differences, not_shown, opening


def to_html(report: Report, arms: Arms) -> str:
    """The whole page as one string."""
    style = files("comparison.page").joinpath("page.css").read_text()
    measures = [result.measures for result in report.results]
    sections = [
        f'<p class="scene">{escape(opening(report.scene))}</p>',
        _verdicts(report.results),
        "<h2>Side by side</h2>" + _table(report.results),
        _differences(report.results),
        *(
            _curves(kind, report.results)
            for kind in ORPHANING
            if any(m.takeover[kind] for m in measures)
        ),
        "<h2>Duplicate calls by cause</h2>" + _causes(report.results),
        "<h2>Crash points</h2>" + crash_points(arms),
        _timelines(arms),
        "<h2>What it means for you</h2>" + advice(report.results),
        "<h2>What this does not show</h2>" + _list(not_shown(report.results)),
        "<h2>Who wrote this, on what, and how to repeat it</h2>" + _list(report.header),
        "<p class='small'>The same experiment again: <code>two-workers replay DIR</code>. Judged "
        "again from its evidence, without running anything: <code>two-workers check DIR</code>."
        "</p>",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Two workers, seed {report.seed}</title><style>{style}</style></head><body>"
        "<h1>Two workers picked up the same investigation: what broke, and what it cost</h1>"
        f"{''.join(sections)}</body></html>\n"
    )


def _verdicts(results: Sequence[ArmResult]) -> str:
    blocks = []
    for result in results:
        items = "".join(
            f'<li><span class="{v.outcome}">{MARKS[v.outcome]} {v.invariant}</span> '
            f"{escape(v.rule)}: {escape(v.summary)}</li>"
            for v in result.verdicts
        )
        what = escape(find_arm(result.arm).what)
        blocks.append(
            f'<div><h3>{escape(result.arm)}</h3><p class="small">{what}</p><ul>{items}</ul></div>'
        )
    return f'<h2>Verdicts</h2><div class="verdicts">{"".join(blocks)}</div>'


def _table(results: Sequence[ArmResult]) -> str:
    head = "".join(f"<th>{escape(result.arm)}</th>" for result in results)
    lines = []
    for section, members in groupby(rows(results), key=lambda row: row.section):
        lines.append(
            f'<tr class="section"><th colspan="{len(results) + 1}">{escape(section)}</th></tr>'
        )
        for row in members:
            filled = "".join(f"<td>{escape(cell)}</td>" for cell in row.cells)
            part = ' class="part"' if row.label.startswith(" ") else ""
            lines.append(f"<tr><th{part}>{escape(row.label.strip())}</th>{filled}</tr>")
    return (
        f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _differences(results: Sequence[ArmResult]) -> str:
    """Nothing for one arm alone: it differs from nothing."""
    found = differences(results)
    return f"<h2>What differs</h2>{_list(found, 'differs')}" if found else ""


def _curves(kind: str, results: Sequence[ArmResult]) -> str:
    curves = [
        Curve(
            name=f"{result.arm} (shaded: when it should change hands)",
            colour=colour,
            values=[r.takeover for r in result.measures.recoveries if r.kind == kind],
            band=find_arm(result.arm).predict(kind),
        )
        for colour, result in zip(COLOURS, results, strict=False)
    ]
    label = "seconds from the fault until somebody else calls the step (it changes hands sooner)"
    return f'<h2>{FAULTS[kind]}</h2><div class="wide">{recovery_curves(curves, label)}</div>'


def _causes(results: Sequence[ArmResult]) -> str:
    groups = [
        (cause, [float(by_cause(result.measures, cause)) for result in results]) for cause in CAUSES
    ]
    drawn = bars(groups, [result.arm for result in results], "calls")
    return f'<div class="wide">{drawn}</div>'


def _timelines(arms: Arms) -> str:
    parts = ["<h2>The run that waited longest</h2>"]
    for arm, cases in arms.items():
        found = worst_run(cases)
        if found is not None:
            case, run = found
            parts.append(f"<h3>{escape(arm)}: {escape(run)}</h3>")
            parts.append(f'<div class="wide">{timeline(case, run)}</div>')
    return "".join(parts) + LEGEND


def _list(lines: Sequence[str], look: str = "small") -> str:
    return f'<ul class="{look}">' + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
