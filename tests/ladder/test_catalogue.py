"""The catalogue of faults, and what is said of one that did not do its work."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from comparison.arms import ARMS, find_arm
from comparison.breakers import main
from comparison.breakers.catalogue import FAULTS, find_fault
from comparison.breakers.skew import Skipped
from comparison.evidence import Case, Clock, Evidence, FaultRecord
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


def test_every_arm_has_a_fault_and_every_fault_an_arm() -> None:
    assert {arm.name for arm in ARMS.values() if FAULTS["mute"].fits(arm)} == set(ARMS)
    assert not FAULTS["cut"].fits(find_arm("temporal"))
    assert all(any(fault.fits(arm) for arm in ARMS.values()) for fault in FAULTS.values())


def test_an_unknown_fault_is_one_clear_line() -> None:
    with pytest.raises(BadInput, match="unknown fault 'flood'; known: mute, deaf"):
        find_fault("flood")
    outcome = CliRunner().invoke(faults, ["--fault", "flood"])
    assert isinstance(outcome.exception, BadInput)


async def test_a_fault_that_did_not_land_is_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missed = FaultRecord(
        number=1, kind="reset", point="reply", phase=0, problem="there was no connection to reset"
    )

    async def bring(*_: object, **__: object) -> Case:
        return case_of(missed)

    monkeypatch.setattr("comparison.breakers.catalogue.break_once", bring)
    said: list[str] = []
    arms, chosen = [find_arm("hand_rolled")], [find_fault("reset")]
    tmp_path.joinpath("hand_rolled", "reset").mkdir(parents=True)
    assert await main.bring_all(arms, chosen, tmp_path, said.append) == 2
    assert "did not land: there was no connection to reset" in said[-1]


async def test_a_fault_that_cannot_be_brought_here_is_skipped_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def skewed(*_: object) -> dict[str, str]:
        raise Skipped("libfaketime is not installed")

    monkeypatch.setattr("comparison.breakers.skew.skewed", skewed)
    said: list[str] = []
    arms, chosen = [find_arm("hand_rolled")], [find_fault("skew")]
    assert await main.bring_all(arms, chosen, tmp_path, said.append) == 2
    assert "skipped: libfaketime is not installed" in said[-1]
