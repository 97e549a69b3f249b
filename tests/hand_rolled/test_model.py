"""The store against a small model, in random order: claims, crashes, pauses, zombies, limits.

Every handle to a run that was ever given out stays in the game, so most writes come from zombies.
The model says which of them must be accepted; the store has to agree, and after each step its rows
have to look like the model and keep the invariants.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from hand_rolled.database import Database
from hand_rolled.settings import Settings
from tests.hand_rolled.bench import Store
from tests.hand_rolled.model import MAX_CRASHES, SUSPECT_AFTER
from tests.hand_rolled.model_claims import Claims
from tests.hand_rolled.model_requests import Requests
from tests.hand_rolled.model_writes import Writes


class StoreMachine(Claims, Writes, Requests):
    """It begins in the middle of things: with work, and with a zombie whose run was taken over."""

    def __init__(self) -> None:
        super().__init__()
        for _ in range(2):
            self.another_hand()
        for tenant in "abab":
            self.start(tenant, 1)
        self.claim(self.hands[0], 2, False)
        self.reserve(self.helds[0], 100)
        self.lease_ends(self.helds[0].run_id)
        self.reclaim(self.hands[1], 3)


def test_the_store_agrees_with_the_model(url: str) -> None:
    check(url, 15, phases=[Phase.generate])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_store_agrees_with_the_model_for_long(url: str) -> None:
    """Also looks for the shortest way to a failure, which takes minutes."""
    check(url, 300, phases=[Phase.generate, Phase.shrink])


def check(url: str, examples: int, *, phases: list[Phase]) -> None:
    chosen = Settings(
        database_url=url, lease_ttl=60, heartbeat_interval=1, notify=False,
        suspect_after=SUSPECT_AFTER, max_crashes=MAX_CRASHES,
    )  # fmt: skip
    with asyncio.Runner() as runner:
        opened = Database(chosen, application="model").opened()
        StoreMachine.runner = runner
        StoreMachine.store = Store(runner.run(opened.__aenter__()), url)
        try:
            run_state_machine_as_test(
                StoreMachine,
                settings=settings(
                    max_examples=examples,
                    stateful_step_count=40,
                    phases=phases,
                    deadline=None,
                    suppress_health_check=list(HealthCheck),
                    database=None,
                ),
            )
        finally:
            runner.run(StoreMachine.store.close())
            runner.run(opened.__aexit__(None, None, None))
