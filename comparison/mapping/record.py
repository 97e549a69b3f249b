"""Make the evidence: every scenario on both engines, and on a store without each guard.

A recording is kept only if every check of it holds, or, without a guard, if the guard's invariant
is convicted. So what lies under `evidence/` was seen to be what the mapping says it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from comparison.break_one import GUARDS, Guard, convict
from comparison.mapping.recording import Recording
from comparison.mapping.scenarios import SCENARIOS, Scenario
from comparison.mapping.scenarios.run import Servers, run

Say = Callable[[str], None]


async def record(names: Sequence[str], say: Say) -> list[str]:
    """Record the scenarios and guards of these names, or all. Returns what is wrong."""
    scenarios = [s for s in SCENARIOS.values() if not names or s.name in names]
    guards = [g for g in GUARDS.values() if not names or f"broken-{g.name}" in names]
    problems: list[str] = []
    async with Servers.open() as servers:
        for scenario in scenarios:
            problems += await _scenario(scenario, servers, say)
    for guard in guards:
        problems += await _guard(guard, say)
    return problems


async def _scenario(scenario: Scenario, servers: Servers, say: Say) -> list[str]:
    recording = await run(scenario, servers)
    wrong = [
        f"{scenario.name} on {side.engine}: {check.invariant} {check.says}: {check.found}"
        for side in recording.sides
        for check in side.failed
    ]
    if not wrong:
        say(f"{recording.write()}")
    return wrong


async def _guard(guard: Guard, say: Say) -> list[str]:
    recording = await convict(guard)
    if not convicts(recording, guard):
        return [f"without {guard.name}: nothing convicts it of {guard.invariant}"]
    say(f"{recording.write(name=f'broken-{guard.name}')}")
    return []


def convicts(recording: Recording, guard: Guard) -> bool:
    """True when a check of the guard's own invariant fails."""
    return any(check.invariant == guard.invariant for s in recording.sides for check in s.failed)
