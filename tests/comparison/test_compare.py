"""The whole thing with real servers, real workers and real faults: short, but nothing left out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from comparison.arms import find_arm
from comparison.checks import judge
from comparison.crowd.checks import CROWD_CHECKS
from comparison.evidence import Case
from comparison.history import Campaign, faults, history
from comparison.main import check
from comparison.measures import measure
from comparison.plan import make_plan
from comparison.questions import QUESTIONS
from comparison.scene import play
from comparison.stage import run_arm
from comparison.verdicts import Outcome
from two_workers import BadInput


async def test_the_first_scene_is_really_paid_twice(tmp_path: Path) -> None:
    paid = await play(tmp_path, 1, QUESTIONS[0])
    assert paid.twice
    assert paid.model_calls_needed > 2
    assert paid.micro_usd == 2 * paid.micro_usd_needed > 0


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", ["hand_rolled", "temporal+tuned"])
async def test_a_short_campaign_lands_its_faults_and_leaves_evidence(
    tmp_path: Path, name: str
) -> None:
    plan = make_plan(
        seed=3,
        workers=2,
        investigations=4,
        cells=[
            ("kill", "begin"),
            ("kill+cancel", "during"),
            ("pause", "during"),
            ("silence", "reply"),
        ],
        cancellations=1,
        questions=QUESTIONS[:3],
    )
    said: list[str] = []
    case = await run_arm(find_arm(name), plan, tmp_path, said.append)
    landed = [fault.number for fault in case.evidence.faults if fault.landed]
    assert landed == [1, 2, 3, 4], said
    assert len(case.evidence.cancellations) == 3
    failed = [v for v in judge(case) if v.outcome is Outcome.FAIL]
    assert not failed
    found = measure(case)
    assert found.runs_lost == 0
    assert found.zombies.spared == 2
    # Temporal's worker may wait for the answer to its heartbeat before it says anything more.
    if name == "hand_rolled":
        assert found.zombies.late_records > 0, "withheld, let through, and answered"
    assert found.zombies.late_records_refused == found.zombies.late_records
    assert found.zombies.writes_tried >= found.zombies.late_records
    again = Case.read(tmp_path)
    assert measure(again) == found, "the evidence alone gives the same figures"
    assert judge(again) == judge(case), "and the same verdicts, those of its crowd among them"
    _has_all_of_it(history([Campaign("block-01", plan, again)]), again)
    told = [json.loads(line) for line in faults([Campaign("block-01", plan, again)])]
    for fault in (fault for fault in told if fault["landed"]):
        times = [fault[name] for name in ("aimed", "struck", "done", "confirmed")]
        assert times == sorted(times), "each after the one before"
        assert fault["healed"] > fault["struck"]
        assert fault["planned"]["occurrence"] >= 1
    crowds = [v for v in judge(again) if v.invariant in {check.invariant for check in CROWD_CHECKS}]
    kept = (Outcome.PASS, Outcome.NOT_PROMISED)
    assert not {v.invariant: v.detail for v in crowds if v.outcome not in kept}


def _has_all_of_it(told: Iterable[str], case: Case) -> None:
    """Every record of the ledger, every start and every end, in the order of time."""
    lines = [json.loads(line) for line in told]
    own = [line for line in lines if line["campaign"] == "block-01"]
    assert own[0]["t"] == 0
    assert [line["t"] for line in own] == sorted(line["t"] for line in own)
    whats = Counter(line["what"] for line in own)
    assert whats["call begun"] == len(case.calls.ledger.calls)
    assert whats["run started"] == len(case.evidence.starts) == whats["run ended"]
    assert whats["step recorded"] == len(case.evidence.writes) > 0
    assert whats["owner changed"] == len(case.evidence.ownerships) > 0
    assert whats["late record let through"] == len(case.evidence.late_records or ())
    assert whats["cancel requested"] == len(case.evidence.cancellations)
    assert whats["fault struck"] >= 4
    assert {line["campaign"] for line in lines} == {"block-01", "block-01/crowd"}


async def test_results_that_are_not_whole_are_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"arms": ["hand_rolled"]}))
    with pytest.raises(BadInput, match="not the results of a whole comparison"):
        check(tmp_path)
