"""Break the workers while they work, and report what each engine's answer cost.

The parts, in the order in which a comparison uses them:

- `arms`        what is compared: one table of settings
- `scene`       the story's first scene: two workers, one investigation, paid twice
- `world/`      the ground truth: a process of its own that plays everything outside the workers
- `cluster`     processes: started, killed, paused, never left behind
- `kinds`       every fault and every crash point by name
- `plan`        the seeded plan: what is started, broken and cancelled
- `breakers/`   how each fault is brought, at each crash point, and confirmed
- `injector`    one fault at a time, timed, and confirmed to have landed where it should
- `campaign`    one arm under its plan; `stage` gives it a server, a world and workers
- `crowd/`      beside it, what its runs never need: limits, budgets, signals, a run that kills
- `evidence`    what a campaign leaves on disk; everything below reads only that
- `checks`      the invariants: pure functions, verdict pass, FAIL or unknown; `promises` has what
                an arm never promised
- `measures/`   recovery, duplicates, zombies, cancellations
- `report`      the table, the differences, and what it does not show; `page/` the same as HTML

`replay` carries a stored comparison out again. `sweep/` compares the same arms under several
leases, `ladder/` breaks each idea of the story and lets a check convict it, `story/` is the table
that a reader would write, `mapping/` compares concept by concept.
"""
