"""A small honest crowd, written down by hand, for tests to falsify one thing at a time.

Two places, two calls of the pool at a time, one run of `grey` at a time. `red` floods the queue
with six runs before `blue` comes. `blue-0` hears two words, one of them sent twice, one as it
parks. `purse-0` has money for one call. `black-0` kills worker A at t=3 while `white-0` is in a
call there, then B at t=6, alone, and is failed.
"""

from __future__ import annotations

from comparison.crowd.app import POOL
from comparison.crowd.notes import Count, Errand, LimitsSet, Notes, Rest, Sent
from comparison.evidence import Case, Start
from two_workers import Limits, RunState

from .planted import Planted, Recorder, S, end

LIMITS = Limits(pools={POOL: 2}, tenants={"grey": 1})


class PlantedCrowd(Recorder):
    """The crowd as lists that a test may change; `case()` makes it evidence."""

    def __init__(self) -> None:
        super().__init__()
        self.ends = {}
        self.errands: dict[str, Errand] = {}
        self.sent = [
            word("blue-0", 0, "early", times=2, at=0.5),
            word("blue-0", 1, "parking", times=1, at=2.2),
            word("blue-0", 0, "late", times=1, at=2.3),
        ]
        self.limits = [LimitsSet(asked_ns=0, acknowledged_ns=1, limits=LIMITS)]
        self.counts = [Count(resource="pool:crowd", counted=0, held=0)]
        self.reserved = 0
        for number in range(6):
            self.run(f"red-{number}", "red", ("ask",), at=0.0, calls=(0.2 + 1.2 * number,))
        self.run("blue-0", "blue", ("ask", "hear", "ask", "hear"), at=0.1, calls=(0.7, 1.9))
        self.ends["blue-0"] = self.ends["blue-0"].model_copy(
            update={"result": [0, 1], "result_again": [0, 1]}
        )
        self.run("grey-0", "grey", ("ask",), at=0.1, calls=(4.0,))
        self.run("grey-1", "grey", ("ask",), at=0.1, calls=(4.2,))
        self.run("purse-0", "purse", ("ask", "ask"), at=0.1, calls=(1.2,), budget=1500)
        self.fail("purse-0", "BudgetExceeded: budget of 1500 micro-dollars: 1000 are spent")
        self._poison()

    def _poison(self) -> None:
        self.run("white-0", "white", ("ask",), at=2.6, calls=())
        self.claim("white-0", 1, "A", at=2.8)
        self.call("white-0", "0.0", 1, "A", at=2.9, ends=3.1, delivered=False)
        self.claim("white-0", 2, "B", at=5.0)
        self.call("white-0", "0.0", 2, "B", at=5.05, ends=5.15)
        self.run("black-0", "black", ("die",), at=2.4, calls=())
        for generation, (worker, at) in enumerate((("A", 2.9), ("B", 5.9)), 1):
            self.claim("black-0", generation, worker, at=at - 0.05)
            self.call("black-0", "0.0", generation, worker, at=at, ends=at + 0.1, kind="tool")
        self.fail("black-0", "Poison: its worker died 1 times while it ran alone")

    def run(
        self,
        run: str,
        tenant: str,
        acts: tuple[str, ...],
        *,
        at: float,
        calls: tuple[float, ...],
        budget: int | None = None,
    ) -> None:
        """A run that worker A has out of the queue just before its first call."""
        self.starts.append(Start(run=run, question=0, t_ns=int(at * S), twin=False))
        self.errands[run] = Errand(
            run=run, tenant=tenant, acts=acts, budget=budget, cost=1000 * len(calls)
        )
        self.ends[run] = end(run, workers="")
        for number, begins in enumerate(calls):
            if number == 0:
                self.claim(run, 1, "A", at=begins - 0.05)
            self.call(run, f"{2 * number}.0", 1, "A", at=begins, ends=begins + 0.1)

    def fail(self, run: str, failure: str) -> None:
        """The run ends failed."""
        failed = {"state": RunState.FAILED, "state_again": RunState.FAILED, "failure": failure}
        self.ends[run] = self.ends[run].model_copy(update=failed)

    def notes(self) -> Notes:
        """What is noted of it."""
        return Notes(
            errands=tuple(self.errands.values()),
            poison="black-0",
            sent=tuple(self.sent),
            limits=tuple(self.limits),
            places=2,
            rest=Rest(counts=tuple(self.counts), reserved=self.reserved),
        )

    def beside(self, planted: Planted, arm: str = "hand_rolled") -> Case:
        """The honest campaign, with this crowd beside it."""
        return planted.case(arm).model_copy(update={"crowd": self.case(arm, crowd=self.notes())})


def word(run: str, number: int, moment: str, *, times: int, at: float) -> Sent:
    """A word that was sent and acknowledged."""
    t_ns = int(at * S)
    return Sent.model_validate(
        {
            "run": run,
            "number": number,
            "moment": moment,
            "times": times,
            "sent_ns": t_ns,
            "acknowledged_ns": t_ns + 1,
        }
    )
