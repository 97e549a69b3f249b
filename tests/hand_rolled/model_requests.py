"""What clients and operators ask for, whoever owns the run."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import precondition, rule

from hand_rolled import operations
from tests.hand_rolled.model import FINAL, Machine, runs
from two_workers import BadInput, Limits, RunClosed


class Requests(Machine):
    """Cancel, signal, suspend, resume, limits."""

    @rule(run_id=runs)
    def cancel(self, run_id: str) -> None:
        run = self.model[run_id]
        view = self.do(self.store.engine.cancel(run_id))
        if run.state not in FINAL:
            run.cancel = True
            if run.state != "running":
                run.leave("cancelled")
        assert view.state == run.state

    @rule(run_id=runs)
    def signal(self, run_id: str) -> None:
        run = self.model[run_id]
        number = run.signals + 1
        signal = self.store.engine.signal(run_id, "go", number, signal_id=str(number))
        if run.state in FINAL:
            with pytest.raises(RunClosed):
                self.do(signal)
            return
        self.do(signal)
        run.signals = number
        if run.state == "waiting":
            run.state = "pending"

    @precondition(lambda self: any(run.state == "waiting" for run in self.model.values()))
    @rule()
    def signal_one_that_waits(self) -> None:
        self.signal(next(it for it in self.runs if self.model[it].state == "waiting"))

    @rule(run_id=runs, suspend=st.booleans())
    def suspend_or_resume(self, run_id: str, suspend: bool) -> None:
        run = self.model[run_id]
        ask = operations.suspend if suspend else operations.resume
        try:
            self.do(ask(self.store.database, run_id))
        except BadInput:
            allowed = (
                ("suspended",) if not suspend else ("pending", "scheduled", "waiting", "running")
            )
            assert run.state not in allowed or (run.state == "running" and not run.suspend)
            return
        if run.state == "running":
            run.suspend = suspend
        else:
            run.state = "suspended" if suspend else "pending"

    @rule(
        total=st.sampled_from([None, 1, 3]),
        each=st.sampled_from([None, 1, 2]),
        calls=st.sampled_from([None, 1]),
    )
    def change_limits(self, total: int | None, each: int | None, calls: int | None) -> None:
        pools = {} if calls is None else {"model": calls}
        self.limits = Limits(max_active=total, max_active_per_tenant=each, pools=pools)
        self.do(self.store.engine.set_limits(self.limits))
