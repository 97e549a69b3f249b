"""The catalogue of faults, and what is said of one that did not do its work."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from comparison.arms import ARMS, find_arm
from comparison.breakers import main
from comparison.breakers.base import Skipped
from comparison.breakers.catalogue import BREAKERS, find_kind, possible, why_not_brought
from comparison.breakers.once import plan_of_one
from comparison.evidence import Case, Clock, Evidence, FaultRecord
from comparison.kinds import KINDS
from comparison.ledger import Index, Ledger
from two_workers import BadInput
from two_workers.cli.faults import faults


def case_of(fault: FaultRecord) -> Case:
    evidence = Evidence(
        arm="hand_rolled", engine="hand_rolled", settings={}, clock=Clock.now(), starts=(),
        ends=(), faults=(fault,), cancellations=(), ownerships=(), writes=(), refused_writes=(),
        healed_ns=0, converged_ns=None, convergence_bound=1,
    )  # fmt: skip
    return Case(evidence=evidence, calls=Index(Ledger()))


def test_every_fault_has_a_breaker_and_every_arm_faults() -> None:
    assert set(BREAKERS) == set(KINDS)
    assert all(why_not_brought("mute", arm) is None for arm in ARMS.values())
    assert why_not_brought("sessions", find_arm("temporal")) == "its server knows no such fault"
    assert why_not_brought("cut", find_arm("temporal")) is None
    assert why_not_brought("restart", find_arm("story"), ours=False) == "the server is not ours"


def test_what_cannot_be_brought_is_left_out_and_said() -> None:
    said: list[str] = []
    plan = plan_of_one("sessions", "reply")
    assert possible(plan, find_arm("hand_rolled"), said.append, ours=True) == plan
    assert possible(plan, find_arm("temporal"), said.append, ours=True).faults == ()
    assert said == ["no sessions: its server knows no such fault"]


def test_an_unknown_fault_is_one_clear_line() -> None:
    with pytest.raises(BadInput, match="unknown fault 'flood'; known: kill, kill\\+cancel"):
        find_kind("flood")
    outcome = CliRunner().invoke(faults, ["--faults", "reset,flood"])
    assert isinstance(outcome.exception, BadInput)


async def test_a_fault_that_did_not_land_is_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missed = FaultRecord(
        number=1, kind="reset", point="reply", phase=0, problem="there was no connection to reset"
    )

    async def bring(*_: object, **__: object) -> Case:
        return case_of(missed)

    monkeypatch.setattr("comparison.breakers.main.bring_once", bring)
    said: list[str] = []
    arms, chosen = [find_arm("hand_rolled")], [find_kind("reset")]
    assert await main.bring_all(arms, chosen, tmp_path, said.append) == 2
    assert "did not land: there was no connection to reset" in said[-1]


async def test_a_fault_that_cannot_be_brought_here_is_skipped_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def skewed(*_: object) -> dict[str, str]:
        raise Skipped("libfaketime is not installed")

    monkeypatch.setattr("comparison.breakers.skew.skewed", skewed)
    said: list[str] = []
    arms, chosen = [find_arm("hand_rolled")], [find_kind("skew")]
    assert await main.bring_all(arms, chosen, tmp_path, said.append) == 2
    assert "skipped: libfaketime is not installed" in said[-1]
