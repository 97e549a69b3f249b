"""The mapping as one table of three columns: the concept, by hand, on Temporal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from comparison.mapping.concept import themes

MARK = {"table": "←", "temporal": "→", "neither": " "}
"""An arrow to the side that does it better."""


def mapping_table() -> RenderableType:
    """All concepts. Fits a terminal of 80 columns."""
    table = Table(show_lines=False, pad_edge=False, expand=True, header_style="bold", box=None)
    table.add_column("concept", ratio=22, overflow="fold")
    table.add_column("by hand (PostgreSQL)", ratio=38)
    table.add_column("")
    table.add_column("Temporal", ratio=38)
    for theme in themes():
        table.add_row()
        table.add_row(Text(theme.title, style="bold cyan", no_wrap=True, overflow="ignore"))
        for concept in theme.concept:
            table.add_row(
                Text(concept.title, style="bold"),
                concept.by_hand.short,
                Text(MARK[concept.better], style="bold green"),
                concept.temporal.short,
            )
    return Group(
        table,
        "",
        Text("← → the side that does it better; why, and the evidence from a run:", style="dim"),
        Text("  two-workers mapping fence        one concept", style="dim"),
        Text("  two-workers mapping --html FILE  everything, as one page", style="dim"),
        Text("  concepts: " + ", ".join(_ids()), style="dim"),
    )


def _ids() -> list[str]:
    return [concept.id for theme in themes() for concept in theme.concept]
