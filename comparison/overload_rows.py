"""The rows of the table that show what two runs arriving for each that ends did to each arm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from comparison import cells, figures
from comparison.breakers.overload import Overload
from comparison.figures import Figure, Row


def overload_rows(arms: Sequence[Mapping[str, Overload]]) -> Iterator[Row]:
    """Two arrive for each that ends. Limits bound what is at work; nobody is sent away."""
    section = "Overload, without and within limits"
    wanted: dict[str, Callable[[Overload], Figure]] = {
        "most model calls at once": lambda o: figures.number(o.most_model_calls_at_once),
        "most runs at work": lambda o: figures.number(o.most_runs_at_work),
        "queue age, first quarter and last": lambda o: Figure(
            f"{o.age_first_quarter:.1f} s, {o.age_last_quarter:.1f} s",
            low=o.age_first_quarter,
            high=o.age_last_quarter,
        ),
        "spent": lambda o: _usd(o.micro_usd, 3),
        "spent a second": lambda o: _usd(o.micro_usd_per_second, 4),
    }
    if not any(arms):
        return
    for label, said in wanted.items():
        for name in ("without", "within"):
            filled = tuple(
                said(measured[name]) if name in measured else Figure("not measured")
                for measured in arms
            )
            yield Row(section, f"{label}, {name}", filled)


def _usd(micro_usd: float, digits: int) -> Figure:
    return Figure(f"${micro_usd / cells.USD:.{digits}f}", micro_usd / cells.USD)
