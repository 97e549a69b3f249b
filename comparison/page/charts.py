"""Two charts: recovery curves with the predicted bands, and duplicates by cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#1d4ed8", "#b45309", "#047857", "#7c3aed", "#be123c", "#0e7490")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 260, 46, 36, 14


@dataclass(frozen=True)
class Curve:
    """One arm's waiting times in seconds. None: never happened, so the curve never gets there."""

    name: str
    colour: str
    values: Sequence[float | None]
    band: tuple[float, float]


def recovery_curves(curves: Sequence[Curve], label: str) -> str:
    """The share of orphaned runs taken over by each second after the fault, one curve an arm.

    The predicted band of each arm is shaded in its colour; every sample is a dot.
    """
    known = [v for curve in curves for v in curve.values if v is not None]
    if not known:
        return "<p>No sample.</p>"
    longest = max(*known, *(curve.band[1] for curve in curves)) * 1.05
    scale = (WIDTH - LEFT - 12) / longest
    parts = [_axes(longest, scale, label)]
    for curve in curves:
        low, high = (LEFT + edge * scale for edge in curve.band)
        parts.append(
            f'<rect x="{low:.1f}" y="{TOP}" width="{high - low:.1f}" '
            f'height="{HEIGHT - TOP - BOTTOM}" fill="{curve.colour}" opacity="0.10"/>'
        )
    for curve in curves:
        parts.append(_steps(curve, scale))
    return _svg(HEIGHT, parts, label) + _legend([(c.name, c.colour) for c in curves])


def _steps(curve: Curve, scale: float) -> str:
    times = sorted(v for v in curve.values if v is not None)
    x, y, path, dots = float(LEFT), _height(0.0), f"M{LEFT} {_height(0.0):.1f}", []
    for i, seconds in enumerate(times, 1):
        x, y = LEFT + seconds * scale, _height(i / len(curve.values))
        path += f"H{x:.1f}V{y:.1f}"
        dots.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{curve.colour}"/>')
    path += f"H{WIDTH - 12}"
    line = f'<path d="{path}" fill="none" stroke="{curve.colour}" stroke-width="2"/>'
    return line + "".join(dots)


def _height(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _axes(longest: float, scale: float, label: str) -> str:
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = _height(share)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 12}" y1="{y}" y2="{y}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{share:.0%}</text>')
    step = max(1, round(longest / 8))
    for second in range(0, int(longest) + 1, step):
        x = LEFT + second * scale
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">')
        parts.append(f"{second}</text>")
    middle = (LEFT + WIDTH) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{escape(label)}</text>')
    return "".join(parts)


def bars(groups: Sequence[tuple[str, Sequence[float]]], names: Sequence[str], unit: str) -> str:
    """Horizontal bars: a group for each label, a bar for each arm."""
    largest = max((value for _, values in groups for value in values), default=0) or 1
    row, y, parts = 16, 8, []
    for label, values in groups:
        parts.append(f'<text x="0" y="{y + 12}">{escape(label)}</text>')
        for colour, value in zip(COLOURS, values, strict=False):
            width = value / largest * (WIDTH - 290)
            parts.append(
                f'<rect x="190" y="{y}" width="{width:.1f}" height="{row - 4}" fill="{colour}"/>'
            )
            parts.append(f'<text x="{196 + width:.1f}" y="{y + 11}">{value:g} {unit}</text>')
            y += row
        y += 8
    return _svg(y, parts, "bars") + _legend(list(zip(names, COLOURS, strict=False)))


def _svg(height: float, parts: Sequence[str], label: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def _legend(entries: Sequence[tuple[str, str]]) -> str:
    items = "".join(
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>'
        for name, colour in entries
    )
    return f'<p class="legend">{items}</p>'
