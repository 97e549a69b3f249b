"""The two diagrams, in characters: they read the same in a terminal, in a README and on a page."""

from __future__ import annotations

WHOLE = """\
   your agent                    two_workers                              the world
   ─────────────        ┌──────────────────────────┐            model · tools · report sink
   await do(step) ────> │ a step, asked for        │               + ledger of every call
   await do_all([…])    └──────┬────────────┬──────┘                        ^
                               │            │                               │
                        hand_rolled     temporal_version        every call carries its key
                        claim, lease,   workflow, activities    and its fence
                        generation,     history, task tokens                │
                        journal             │                               │
                          │                 │        worker A ──────────────┤
                     PostgreSQL       Temporal server                       │
                          │                 │        worker B ──────────────┘
                          └────────┬────────┘            ^
                                   │                     │ SIGKILL, SIGSTOP, a cut network, cancel
                             what it recorded        comparison: breaks the workers, then holds
                                   └───────────────> record and ledger against each other
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
