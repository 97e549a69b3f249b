"""`--help` names what there is, though it does not load what knows it."""

from __future__ import annotations

import pytest

from comparison.arms import ARMS
from comparison.kinds import KINDS
from hand_rolled.explain import TOPICS
from tests.cli.command import two_workers


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("compare", ARMS),
        ("compare-full", ARMS),
        ("compare-full", KINDS),
        ("sweep", ARMS),
        ("faults", ARMS),
        ("faults", KINDS),
    ],
)
def test_arms_and_faults(command: str, names: dict[str, object]) -> None:
    assert f"of {', '.join(names)}:" in words(command)


def test_topics() -> None:
    said = words("explain")
    assert [name for name in TOPICS if name not in said] == []


def words(command: str) -> str:
    """The help of a command, as one line."""
    done = two_workers(command, "--help")
    assert done.returncode == 0
    return " ".join(done.stdout.split())
