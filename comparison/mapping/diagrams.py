"""The two diagrams, in characters: they read the same in a terminal, in a README and on a page."""

from __future__ import annotations

WHOLE = """\
   your agent               await do(AskModel(…)); it knows no engine
       │
       v
   two_workers              the seam: steps, apps, what an engine promises
       │                              │
       v                              v
   hand_rolled                    temporal_version
   rows, leases, generations      workflow, activities, task tokens
       │                              │
   PostgreSQL                     Temporal server
       ^                              ^
       └───── worker A, worker B ─────┘ <───┐ SIGKILL, SIGSTOP,
                     │                      │ a cut network, cancel
                     │ each call carries    │
                     v its key and fence    │
   the world                            comparison
   model, tools, report sink            holds the engine's record
   ledger of every call  <───────────── against the ledger
"""

STATES = """\
                  ENQUEUE
                     │
                     v      CLAIM +1                    FINISH
   ┌────────────> pending ───────────────> running ─────────────> succeeded
   │                 ^                     │ │ ^ │                failed
   │ PROMOTE         │   LEAVE (hand over) │ │ └─┘ RECLAIM +1     cancelled
   │ SIGNAL          ├─────────────────────┘ │
   │                 │ RESUME                │ LEAVE (retry, sleep, park, suspend)
   └── scheduled     └────── suspended <─────┤
       waiting  <────────────────────────────┘
"""
"""The states of a run by hand; `hand_rolled/STATES.md` has every arrow. `+1` is the generation."""
