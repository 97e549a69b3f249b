"""A crowd without a campaign: `python -m comparison.crowd ARM DIRECTORY [--seed N]`.

Says what its five checks found; its evidence stays in DIRECTORY.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from comparison.arms import find_arm
from comparison.checks import judge
from comparison.crowd.checks import CROWD_CHECKS
from comparison.crowd.stage import gather
from comparison.evidence import Clock
from comparison.verdicts import EXIT_CODES, worst


def main() -> int:
    """Play it; the exit code is that of the worst verdict."""
    parser = argparse.ArgumentParser(prog="python -m comparison.crowd")
    parser.add_argument("arm", type=find_arm)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    given.directory.mkdir(parents=True, exist_ok=True)
    crowd = asyncio.run(gather(given.arm, given.seed, given.directory, Clock.now()))
    ours = {check.invariant for check in CROWD_CHECKS}
    found = [v for v in judge(crowd.model_copy(update={"crowd": crowd})) if v.invariant in ours]
    for verdict in found:
        print(f"{verdict.outcome:<12} {verdict.invariant:<11} {verdict.detail}")  # noqa: T201 - this is a program
    return EXIT_CODES[worst(verdict.outcome for verdict in found)]


if __name__ == "__main__":
    sys.exit(main())
