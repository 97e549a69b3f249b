"""What a person reads of an amount of money."""

from __future__ import annotations

import pytest

from two_workers import BudgetExceeded
from two_workers.money import dollars


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (0, "$0.0000"),
        (1, "$0.000001"),
        (2500, "$0.0025"),
        (54_877, "$0.054877"),
        (1_000_000, "$1.0000"),
        (10**15 - 1, "$999999999.999999"),
    ],
)
def test_an_amount_is_said_in_dollars_to_the_last_digit_that_counts(amount: int, said: str) -> None:
    assert dollars(amount) == said


def test_a_refused_step_says_what_is_spent_and_what_to_do() -> None:
    error = BudgetExceeded(budget=2500, spent=2000, worst_case=1010)
    assert str(error) == (
        "the run's budget is $0.0025, $0.0020 are spent, and what comes next may cost up to "
        "$0.00101; start a new run with a larger budget, or lower the worst case"
    )
    assert (error.budget, error.spent, error.worst_case) == (2500, 2000, 1010)
