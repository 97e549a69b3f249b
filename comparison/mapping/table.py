"""The mapping as one table of three columns: the concept, by hand, on Temporal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from comparison.mapping.concept import Theme, concepts, themes

MARK = {"table": "←", "temporal": "→", "neither": " "}
"""An arrow to the side that does it better."""
CONCEPT = 16
GAPS = 4


def mapping_table(width: int) -> RenderableType:
    """All concepts, in `width` columns; 80 are enough."""
    side = (width - CONCEPT - GAPS) // 2
    return Group(
        *(_theme_table(theme, side) for theme in themes()),
        Text("← → the side that does it better; why, and the evidence from a run:", style="dim"),
        Text("  two-workers mapping fence        one concept", style="dim"),
        Text("  two-workers mapping --html FILE  everything, as one page", style="dim"),
        Text("concepts: " + ", ".join(c.id for c in concepts()), style="dim"),
    )


def _theme_table(theme: Theme, side: int) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("concept", width=CONCEPT)
    table.add_column("by hand (PostgreSQL)", width=side, overflow="fold")
    table.add_column("", width=1)
    table.add_column("Temporal", width=side, overflow="fold")
    for concept in theme.concept:
        table.add_row(
            Text(concept.title, style="bold"),
            concept.by_hand.short,
            Text(MARK[concept.better], style="bold green"),
            concept.temporal.short,
        )
    return Group(Text(theme.title, style="bold cyan"), table, "")
