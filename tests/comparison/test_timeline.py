"""The picture of one run: whose calls, what broke and for how long, in which colours."""

from __future__ import annotations

import colorsys
import re

from comparison.page.timeline import REFUSED, REPEATED, caption, timeline, worst_run

from .planted import Planted, S, fault


def test_a_worker_whose_connection_was_cut_is_not_drawn_as_dead() -> None:
    planted = Planted()
    planted.faults = [fault(1, "cut", "B", "run-2/0.0", at=21.05)]
    shades = {}
    for kind in ("cut", "kill"):
        planted.faults[0] = planted.faults[0].model_copy(update={"kind": kind})
        run = planted.faults[0].owned[0]
        [shades[kind]] = re.findall(
            r'width="([\d.]+)" height="28" class="fault"', timeline(planted.case(), run)
        )
    assert float(shades["cut"]) < 10 < float(shades["kill"])


def test_the_picture_of_the_longest_wait_has_its_fault_and_names_it() -> None:
    planted = Planted()
    everybody = fault(1, "restart", "", "run-0/1.0", at=2.0)
    planted.faults[0] = everybody.model_copy(update={"healed_ns": 3 * S})
    found = worst_run([planted.case()])
    assert found is not None
    case, wait = found
    assert (wait.run, wait.kind) == ("run-0", "restart")
    drawn = timeline(case, wait.run)
    assert drawn.count("fault 1: restart") == drawn.count("calls of run-0 by") == 2, "all are hit"
    assert caption(case, wait) == (
        "run-0: it waited 2.0 s for another worker after fault 1 (restart: the server crashes "
        "under everybody and comes back on its data), which came 1.0 s into this picture, and was "
        "over 1.0 s later."
    )
    planted.faults[0] = everybody
    assert caption(planted.case(), wait).endswith("; when that was over is not on record.")


def test_a_fault_that_was_over_before_a_run_began_is_not_in_its_picture() -> None:
    assert "fault 2: pause" in timeline(Planted().case(), "run-1")
    planted = Planted()
    planted.faults[1] = planted.faults[1].model_copy(
        update={"before_ns": 5 * S, "after_ns": 5 * S, "resumed_ns": 6 * S}
    )
    assert "fault 2: pause" not in timeline(planted.case(), "run-1")


def test_a_zombies_call_is_not_in_the_colour_of_a_call_again() -> None:
    hues = [colorsys.rgb_to_hsv(*bytes.fromhex(c[1:]))[0] for c in (REPEATED, REFUSED)]
    assert abs(hues[0] - hues[1]) > 0.2
