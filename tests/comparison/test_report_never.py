"""What the report says of what did not happen in time, and of what happens rarely."""

from __future__ import annotations

import pytest

from comparison.checks import judge
from comparison.measures import measure
from comparison.page import advice
from comparison.report import ArmResult, rows

from .planted import Planted, S


def abandoned() -> ArmResult:
    """The planted campaign, but that nobody ever takes over from the killed worker."""
    planted = Planted()
    planted.records = [r for r in planted.records if not 3.5 * S < r.t_ns < 4.5 * S]
    planted.ownerships = [o for o in planted.ownerships if (o.what, o.fence) != ("run-0", (2,))]
    case = planted.case("hand_rolled")
    return ArmResult("hand_rolled", tuple(judge(case)), measure(case), {})


def test_what_never_happened_is_not_said_to_be_no_sample() -> None:
    found = {row.label.strip(): row.figures[0] for row in rows([abandoned()])}
    takeover = found["takeover after SIGKILL: to the next call of the step"]
    assert (takeover.text, takeover.n) == ("never in the 22 s watched", 1)
    assert found["changed hands: median [95 % CI]"].text != "no sample"


def test_a_run_that_nobody_took_over_stood_still_for_as_long_as_it_was_watched() -> None:
    found = advice.figures(abandoned().measures)
    assert found["stood"] == pytest.approx(24 - 2.005)
    assert found["never"] == 1
    said = advice.advice([abandoned()])
    assert "stood still for at least 22.0 s on average after a kill (1 was never" in said


def test_a_cancelled_run_whose_worker_is_struck_has_rows_of_its_own() -> None:
    planted = Planted()
    planted.cancellations[0] = planted.cancellations[0].model_copy(update={"case": "struck"})
    case = planted.case()
    result = ArmResult("hand_rolled", tuple(judge(case)), measure(case), {})
    found = {(row.section, row.label): row for row in rows([result])}
    ended = found["Cancel a run, and its worker is struck", "run ended"]
    assert ended.cells == ("0.10 s, at most 0.10 s (n=1)",)
