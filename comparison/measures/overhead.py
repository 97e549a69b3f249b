"""What an engine costs when nothing breaks: time beside the calls, writes and billable actions.

The fault-free twin is the clean window: the same questions under the same load, before any fault.
The whole campaign adds what faults and cancellations cost. Everything that goes on at the server
is in it: starts, claims, heartbeats, polls, records, ends, and the harness's own looks at the runs
(which write nothing). A poll of hand_rolled that finds nothing has locked a row all the same, and
counts as a transaction that wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from comparison.evidence import Case
from comparison.meters import ACTION, ROWS
from two_workers import RunState

HEARTBEAT = ACTION + "grpc_RecordActivityTaskHeartbeat"
QUERY = ACTION + "grpc_QueryWorkflow"


@dataclass(frozen=True)
class Window:
    """What the server counted while `runs` runs were started, and `steps` recorded for them.

    `actions` are the billable ones in the runs' histories, by kind; empty but for Temporal.
    """

    seconds: float = 0.0
    runs: int = 0
    steps: int = 0
    counts: Mapping[str, float] = field(default_factory=dict)
    actions: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Window) -> Window:
        """Both together."""
        return Window(
            self.seconds + other.seconds,
            self.runs + other.runs,
            self.steps + other.steps,
            {
                n: self.counts.get(n, 0) + other.counts.get(n, 0)
                for n in {**self.counts, **other.counts}
            },
            dict(Counter(self.actions) + Counter(other.actions)),
        )

    def each(self, name: str) -> tuple[float, float] | None:
        """A count for each run and for each step; None where the server does not count it."""
        total = self.counts.get(name)
        if total is None or not self.runs or not self.steps:
            return None
        return total / self.runs, total / self.steps

    @property
    def billable(self) -> float | None:
        """Billable actions for each run: by the server's metric, else by the histories alone."""
        return self.counted_actions or self.history_actions

    @property
    def rows_written(self) -> tuple[float, float] | None:
        """Rows inserted, updated and deleted, for each run and for each step."""
        rows = [n for name, n in self.counts.items() if name.startswith(ROWS)]
        return (sum(rows) / self.runs, sum(rows) / self.steps) if rows and self.steps else None

    @property
    def counted_actions(self) -> float | None:
        """All billable actions for each run, as the server's own metric has them."""
        found = [n for name, n in self.counts.items() if name.startswith(ACTION)]
        return sum(found) / self.runs if found and self.runs else None

    @property
    def heartbeats(self) -> float | None:
        """Heartbeats that reached the server, for each run: billable, and in no history."""
        return self.counts.get(HEARTBEAT, 0.0) / self.runs if self.counted_actions else None

    @property
    def queries(self) -> float | None:
        """Queries for each run, likewise: a step too large for a task is asked for by one."""
        return self.counts.get(QUERY, 0.0) / self.runs if self.counted_actions else None

    @property
    def history_actions(self) -> float | None:
        """Billable actions for each run, as the histories show them: without heartbeats."""
        return sum(self.actions.values()) / self.runs if self.actions and self.runs else None


@dataclass(frozen=True)
class TwinRun:
    """One fault-free run, in seconds: open but in no call (claiming, recording, dispatching,
    noticing the end), and in its calls, all of them added up."""

    beside: float
    calling: float
    steps: int


@dataclass(frozen=True)
class Overhead:
    """What the engine added, in the fault-free twin and in the whole campaign."""

    twin: Window = Window()
    whole: Window = Window()
    runs: tuple[TwinRun, ...] = ()

    def __add__(self, other: Overhead) -> Overhead:
        """Both together."""
        return Overhead(self.twin + other.twin, self.whole + other.whole, self.runs + other.runs)

    @property
    def seconds_per_step(self) -> list[float]:
        """Seconds beside the calls for each step, one figure a run."""
        return [run.beside / run.steps for run in self.runs if run.steps]


def overhead(case: Case) -> Overhead:
    """What the engine cost in one campaign."""
    evidence = case.evidence
    twins = {start.run for start in evidence.starts if start.twin}
    everything = {start.run for start in evidence.starts}
    return Overhead(
        twin=_window(case, "twin", twins),
        whole=_window(case, "whole", everything),
        runs=tuple(_twin_runs(case, twins)),
    )


def _window(case: Case, name: str, runs: set[str]) -> Window:
    evidence = case.evidence
    loads = [load for load in evidence.loads if load.window == name]
    if not loads:
        return Window()
    [load] = loads
    actions: Counter[str] = Counter()
    for run in runs:
        actions.update(evidence.actions.get(run, {}))
    steps = sum(len(end.steps) for end in evidence.ends if end.run in runs)
    return Window(load.seconds, len(runs), steps, load.counts, dict(actions))


def _twin_runs(case: Case, twins: set[str]) -> Iterator[TwinRun]:
    starts = {start.run: start.t_ns for start in case.evidence.starts}
    for end in case.evidence.ends:
        if end.run in twins and end.state is RunState.SUCCEEDED:
            spans = [
                (call.begin.t_ns, min(call.end.t_ns, end.t_ns))
                for call in case.calls.by_run.get(end.run, [])
                if call.end is not None
            ]
            open_for = end.t_ns - starts[end.run]
            yield TwinRun(
                beside=(open_for - covered(spans)) / 1e9,
                calling=sum(until - since for since, until in spans) / 1e9,
                steps=len(end.steps),
            )


def covered(spans: Sequence[tuple[int, int]]) -> int:
    """The length of the union of spans."""
    total, reached = 0, 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total
