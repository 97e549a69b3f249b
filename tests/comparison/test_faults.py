"""What a fault did, read from a small campaign written down by hand: takeovers, orphans, cells."""

from __future__ import annotations

from dataclasses import replace as changed
from html import escape
from typing import Any

from comparison.checks import judge
from comparison.evidence import FaultRecord
from comparison.faults import in_hand, takeovers
from comparison.kinds import KINDS, POINTS, FaultKind
from comparison.ledger import Ledger
from comparison.measures.recovery import recoveries
from comparison.owner_checks import orphans, takeovers_from_the_spared
from comparison.page.grid import crash_points, struck
from comparison.verdicts import Outcome
from two_workers import RunState

from .planted import Planted, S, end, fault


def planted_with(*faults: FaultRecord) -> Planted:
    planted = Planted()
    planted.faults = list(faults)
    return planted


def kill(**changes: Any) -> FaultRecord:
    """The planted kill of A in `run-0/1.0`, which B takes over at t=4."""
    return fault(1, "kill", "A", "run-0/1.0", at=2.0).model_copy(update=changes)


def between() -> FaultRecord:
    """A is killed when `run-0/0.0` is recorded and nothing else has begun."""
    return kill(
        point="between",
        held_key="run-0/0.0",
        answered="run-0/0.0",
        before_ns=int(1.5 * S),
        after_ns=int(1.5 * S),
        in_flight=(),
    )


def outcome(planted: Planted, invariant: str) -> tuple[Outcome, str]:
    [verdict] = [v for v in judge(planted.case()) if v.invariant == invariant]
    return verdict.outcome, verdict.detail


def test_a_run_between_two_steps_is_taken_over_by_whoever_begins_the_next() -> None:
    case = planted_with(between()).case()
    [struck_run] = between().owned
    assert struck_run == "run-0"
    taken = takeovers(case.calls.ledger.calls.values(), between())
    assert taken == {"run-0": 4 * S}, "A's own later call is no takeover"
    assert orphans(case, between()) == ["run-0"]
    [recovery] = recoveries(case)
    assert recovery.kind == "kill, between steps", "another law holds there"


def test_a_run_between_two_steps_that_nobody_goes_on_with_is_stranded() -> None:
    planted = planted_with(between())
    planted.records = [r for r in planted.records if not 3.5 * S < r.t_ns < 4.5 * S]
    planted.ownerships = [o for o in planted.ownerships if o.fence == (1,)]
    assert outcome(planted, "INV-ORPHAN")[0] is Outcome.FAIL


def test_a_fault_that_may_leave_its_victim_at_work_orphans_nobody() -> None:
    kinds: list[FaultKind] = ["reset", "cut", "stall", "deaf", "drain", "restart", "sessions"]
    for kind in kinds:
        assert not KINDS[kind].takes_away
        assert outcome(planted_with(kill(kind=kind)), "INV-ORPHAN")[0] is Outcome.UNKNOWN
    [recovery] = recoveries(planted_with(kill(kind="stall")).case())
    assert recovery.run == "run-0", "but this one lost its run"


def test_a_fault_that_missed_and_then_landed_is_no_doubt() -> None:
    missed = kill(landed=False, problem="run-0 had ended already", in_flight=())
    assert outcome(planted_with(missed, kill()), "INV-ORPHAN")[0] is Outcome.PASS
    assert outcome(planted_with(missed), "INV-ORPHAN") == (
        Outcome.UNKNOWN,
        "fault 1 did not land: run-0 had ended already",
    )


def test_what_everybody_suffered_excuses_the_takeovers_that_it_caused_and_no_others() -> None:
    restart = kill(kind="restart", victim="")
    planted = planted_with(restart)
    spared = {later.who.key for _, later in takeovers_from_the_spared(planted.case())}
    assert spared == {"run-1/1.0"}, "C was taken over long after the restart"
    takeover = takeovers(planted.case().calls.ledger.calls.values(), restart)
    assert takeover == {"run-0": 4 * S}


def test_a_worker_that_joined_with_a_wrong_clock_excuses_nothing() -> None:
    skew = kill(kind="skew", point="idle", victim="A", held_key=None, in_flight=())
    spared = {later.who.key for _, later in takeovers_from_the_spared(planted_with(skew).case())}
    assert spared == {"run-0/1.0", "run-1/1.0"}


def test_only_what_a_worker_owns_is_in_its_hand() -> None:
    ledger = planted_with().case().calls.ledger
    assert in_hand(ledger, ["A"], 2 * S) == ("run-0/1.0",)
    superseded = Planted()
    superseded.call("run-0", "1.0", 3, "D", at=1.95, ends=2.5)
    assert in_hand(superseded.case().calls.ledger, ["A"], 2 * S) == ()
    assert in_hand(Ledger(), ["A"], 2 * S) == ()


def test_a_cell_counts_what_landed_and_what_missed_and_how_long_the_held_run_waited() -> None:
    missed = kill(landed=False, problem="nobody was idle", in_flight=())
    other = fault(2, "pause", "C", "run-1/1.0", at=10.0, resumed=13.0)
    cells = struck([planted_with(missed, kill(), other).case()])
    assert str(cells["kill", "begin"]) == "✓ n = 1, 2.00 s, 1 did not land"
    assert str(cells["pause", "begin"]) == "✓ n = 1, 2.00 s"
    never = changed(cells["kill", "begin"], landed=0)
    assert str(never) == "? 1 did not land"


def test_a_cell_convicts_a_run_that_did_not_end_like_its_twin() -> None:
    planted = planted_with(kill())
    planted.ends["run-0"] = end("run-0", state=RunState.FAILED)
    [cell] = struck([planted.case()]).values()
    assert str(cell).startswith("✗ n = 1")
    assert cell.went_wrong == ("run-0 ended failed, unlike its twin",)


def test_the_grid_names_fault_and_point_in_words() -> None:
    html = crash_points({"hand_rolled": [planted_with(kill(), between()).case()], "story": []})
    assert f"kill: {escape(POINTS['begin'])}" in html
    assert f"kill: {escape(POINTS['between'])}" in html
    assert "<td>–</td>" in html, "nothing was struck on the other arm"
