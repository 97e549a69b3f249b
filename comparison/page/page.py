"""`report.html`, from top to bottom: verdicts, table, curves, crash points, worst runs, advice."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from comparison.arms import find_arm
from comparison.measures import CAUSES, KINDS
from comparison.page.advice import advice
from comparison.page.charts import COLOURS, Curve, bars, recovery_curves
from comparison.page.grid import Arms, crash_points
from comparison.page.timeline import LEGEND, timeline, worst_run
from comparison.render import MARKS, Report
from comparison.report import FAULTS, ArmResult, rows
from comparison.sentences import NOT_SHOWN, differences, opening

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #0f172a; margin: 0 auto; max-width: 1080px;
       padding: 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { margin-top: 2.2rem; font-size: 1.25rem; }
.scene { border-left: 4px solid #c2410c; padding: .4rem 1rem; background: #fff7ed; }
.small { color: #475569; font-size: .85rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #e2e8f0;
         vertical-align: top; font-weight: normal; }
thead th, tr.section th { font-weight: 600; } tr.section th { padding-top: .8rem; }
.wide { overflow-x: auto; }
.pass { color: #047857; } .FAIL { color: #be123c; font-weight: 700; } .unknown { color: #b45309; }
.verdicts { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 1rem; }
.verdicts ul { list-style: none; padding: 0; font-size: .92rem; }
svg { width: 100%; min-width: 600px; height: auto; font: 11px system-ui, sans-serif; }
svg .grid { stroke: #e2e8f0; } svg .fault { fill: #fecaca; }
.legend span { margin-right: 1.2rem; white-space: nowrap; font-size: .85rem; }
.legend i { display: inline-block; width: .8em; height: .8em; margin-right: .35em; }
#inputs { display: grid; grid-template-columns: repeat(auto-fit, minmax(280px, 1fr));
          gap: .5rem 1.5rem; }
#inputs label { display: flex; justify-content: space-between; gap: .8rem; font-size: .9rem; }
#inputs input { width: 6rem; height: 1.8rem; }
.advice { font-weight: 600; }
@media print { body { max-width: none; font-size: 11px; } h2, svg, table { break-inside: avoid; }
               svg { min-width: 0; } }
"""


def to_html(report: Report, arms: Arms) -> str:
    """The whole page as one string."""
    measures = [result.measures for result in report.results]
    sections = [
        f'<p class="scene">{escape(opening(report.scene))}</p>',
        _verdicts(report.results),
        "<h2>Side by side</h2>" + _table(report.results),
        "<h2>What differs</h2>" + _list(differences(report.results)),
        *(
            _curves(kind, report.results)
            for kind in KINDS
            if any(m.takeover[kind] for m in measures)
        ),
        "<h2>Duplicate calls by cause</h2>" + _causes(report.results),
        "<h2>Crash points</h2>" + crash_points(arms),
        _timelines(arms),
        "<h2>What it means for you</h2>" + advice(measures),
        "<h2>What this does not show</h2>" + _list(NOT_SHOWN),
        "<h2>Who wrote this, on what, and how to repeat it</h2>" + _list(report.header),
        f"<p class='small'>Again: <code>two-workers compare --seed {report.seed}</code>. Judged "
        "again from the evidence, without running anything: <code>two-workers check DIR</code>."
        "</p>",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Two workers, seed {report.seed}</title><style>{STYLE}</style></head><body>"
        "<h1>Two workers picked up the same investigation: what broke, and what it cost</h1>"
        f"{''.join(sections)}</body></html>\n"
    )


def _verdicts(results: Sequence[ArmResult]) -> str:
    blocks = []
    for result in results:
        items = "".join(
            f'<li><span class="{v.outcome}">{MARKS[v.outcome]} {v.invariant}</span> '
            f"{escape(v.rule)}: {escape(v.detail)}</li>"
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
            lines.append(f"<tr><th>{escape(row.label)}</th>{filled}</tr>")
    return (
        f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _curves(kind: str, results: Sequence[ArmResult]) -> str:
    curves = [
        Curve(
            name=f"{result.arm} (shaded: predicted)",
            colour=colour,
            values=[r.takeover for r in result.measures.recoveries if r.kind == kind],
            band=find_arm(result.arm).predict(kind),
        )
        for colour, result in zip(COLOURS, results, strict=False)
    ]
    label = "seconds from the fault until another worker has the run"
    return f'<h2>{FAULTS[kind]}</h2><div class="wide">{recovery_curves(curves, label)}</div>'


def _causes(results: Sequence[ArmResult]) -> str:
    groups = [
        (cause, [float(sum(r.measures.duplicates.by_cause[cause].values())) for r in results])
        for cause in CAUSES
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


def _list(lines: Sequence[str]) -> str:
    return '<ul class="small">' + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
