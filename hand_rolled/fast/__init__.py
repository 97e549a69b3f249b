"""The fast path: what many runs of one worker want written goes to disk in one commit.

Off by default, on by `HAND_ROLLED_FAST=true`. Nothing in here changes who may resume a run: the
same tables, the same fence under the same lock, the same outcomes. It changes how many statements
that takes. A run of ten-second model calls gains nothing from it; thousands of short runs do.

Read `../journal.py` and `../lifecycle.py` first, then

- `commit.py`: group commit. Records and ends of all runs of a worker, one statement per flush.
- `journal.py`: the journal and the driver of one run on top of it. The agent may *think* ahead of
  the disk, but not act: no effect begins before every record of its run is durable.
- `claims.py`: claims that begin where the last one left off, so that they stay fast while somebody
  holds a snapshot.
- `shift.py`: the worker's loop. Claims in batches; looks for orphans at its own pace.
- `starts.py`: the same for a client that starts many runs at once.

What many share, one can hold up: while somebody else keeps a run's row locked, the flush that holds
its write waits, and with it the writes of all runs of that worker. As with a heartbeat, that ends
with the lock, or when the leases do.

Its connections use prepared statements, so they must reach PostgreSQL itself or a pooler in session
mode. Steps that take part in a limit (a pool, a budget) or that bring statements of their own are
recorded one by one, as in the readable path.
"""
