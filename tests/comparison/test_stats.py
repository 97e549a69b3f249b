"""Statistics against an oracle or a closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from comparison.stats import (
    Wait,
    log_rank,
    median,
    median_over_blocks,
    needed_for,
    quantile_interval,
    sign_test,
    summarise,
    upper_bound_of_zero,
)


def test_the_sample_needed_for_a_quantile_is_the_known_one() -> None:
    assert needed_for(0.95) == 59
    assert needed_for(0.99) == 299


@pytest.mark.parametrize(("n", "percent"), [(20, 13.9), (30, 9.5), (100, 3.0), (300, 1.0)])
def test_a_zero_count_rules_out_what_the_rule_of_three_says(n: int, percent: float) -> None:
    assert 100 * upper_bound_of_zero(n) == pytest.approx(percent, abs=0.06)


def test_nothing_observed_rules_out_nothing() -> None:
    assert upper_bound_of_zero(0) == 1.0


def test_a_p95_is_given_from_59_samples_on_and_not_before() -> None:
    chance = np.random.default_rng(1)
    small = summarise([[Wait(v)] for v in chance.exponential(size=58)])
    large = summarise([[Wait(v)] for v in chance.exponential(size=59)])
    assert small is not None
    assert small.p95 is None
    assert large is not None
    assert large.p95 is not None
    assert large.p95.low <= large.p95.value <= large.maximum


def test_a_quantile_interval_covers_the_truth_as_often_as_it_claims() -> None:
    chance = np.random.default_rng(2)
    truth = -math.log(1 - 0.9)
    intervals = [quantile_interval(list(chance.exponential(size=80)), 0.9) for _ in range(400)]
    covered = sum(i.low <= truth <= i.high for i in intervals) / len(intervals)
    assert covered >= 0.93


def test_resampling_blocks_gives_a_wider_interval_than_pretending_independence() -> None:
    chance = np.random.default_rng(3)
    blocks = [[Wait(center + chance.normal(0, 0.01)) for _ in range(5)] for center in range(8)]
    by_block = median_over_blocks(blocks, seed=1)
    alone = median_over_blocks([[v] for block in blocks for v in block], seed=1)
    assert by_block.high - by_block.low > alone.high - alone.low


def test_one_block_has_no_interval() -> None:
    lone = median_over_blocks([[Wait(1.0), Wait(2.0), Wait(3.0)]], seed=1)
    assert (lone.value, lone.low, lone.high) == (2.0, -math.inf, math.inf)


def test_no_sample_has_no_summary() -> None:
    assert summarise([]) is None
    assert summarise([[], []]) is None


def test_a_wait_that_was_never_over_counts_as_long_in_the_median() -> None:
    over = [Wait(seconds) for seconds in (1.0, 2.0, 3.0)]
    forever = [Wait(40.0, over=False)] * 2
    assert median(over) == 2.0
    assert median([*over, *forever]) == 3.0, "Kaplan–Meier: half of five had an end by then"
    assert median([*over[:1], *forever]) == math.inf


def test_a_wait_cut_short_only_says_that_it_lasted_so_long() -> None:
    cut = [Wait(1.5, over=False)]
    assert median([Wait(1.0), *cut, Wait(2.0), Wait(3.0)]) == 2.0, "3/4 after 1 s, 3/8 after 2 s"


def test_a_summary_counts_what_was_censored_and_gives_the_longest_of_the_rest() -> None:
    found = summarise([[Wait(1.0), Wait(2.0)], [Wait(3.0)], [Wait(40.0, over=False)]])
    assert found is not None
    assert (found.n, found.blocks, found.censored, found.maximum) == (4, 3, 1, 3.0)
    assert found.median.high == math.inf, "resampled, the lone censored block may outweigh the rest"
    assert summarise([[Wait(40.0, over=False)]]) is None


def test_the_log_rank_test_tells_slow_from_fast_and_not_alike_from_alike() -> None:
    chance = np.random.default_rng(4)
    fast = [Wait(v) for v in chance.uniform(1.5, 2.0, size=30)]
    slow = [Wait(v) for v in chance.uniform(2.5, 3.0, size=30)]
    again = [Wait(v) for v in chance.uniform(1.5, 2.0, size=30)]
    assert (log_rank(fast, slow) or 1) < 0.001
    assert (log_rank(fast, again) or 0) > 0.05
    assert (log_rank(fast, [Wait(40.0, over=False)] * 30) or 1) < 0.001, "never came at all"


@pytest.mark.parametrize("few", [[], [Wait(v) for v in (1.0, 2.0, 3.0)], [Wait(1.0)] * 4])
def test_too_few_waits_or_none_that_differ_are_not_tested(few: list[Wait]) -> None:
    assert log_rank(few, few) is None


def test_a_sign_test_needs_six_blocks_to_say_anything() -> None:
    assert sign_test([1.0] * 5) == pytest.approx(2 / 2**5)
    assert sign_test([1.0] * 6) == pytest.approx(2 / 2**6)
    assert sign_test([1.0, -1.0, 0.0]) == 1.0
    assert sign_test([]) == 1.0
