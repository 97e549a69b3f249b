"""Break the workers while they work, and report what each engine's answer cost.

The parts, in the order in which a comparison uses them:

- `arms`        what is compared: one table of settings
- `world/`      the ground truth: a process of its own that plays everything outside the workers
- `cluster`     worker processes: started, killed, paused, never left behind
- `plan`        the seeded plan: what is started, broken and cancelled, and when
- `faults`      one fault at a time, timed, and confirmed to have landed on work in flight
- `campaign`    one arm from its server's start to its last run's end
- `evidence`    what a campaign leaves on disk; everything below reads only that
- `checks`      the invariants: pure functions, verdict pass, FAIL or unknown
- `measures`    recovery, duplicates, zombies, cancellations
- `report`      the verdicts, the table, and what it does not show
"""
