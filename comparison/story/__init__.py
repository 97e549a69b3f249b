"""The arm `story`: the table that a reader of the story writes next.

The story gives a claim, a lease, a heartbeat and a cancel flag (`statements.py`, its own words).
A reader puts a worker over them, which finds in a journal what a run has done already, and has a
system that works. `worker.py` is that worker, whole: about 100 lines, no worse and no better. Copy
the two files.

The rest is not the reader's: `adapter/` lets the comparison start it like any other arm, and
`camera.py` is the harness's own record of who claimed and who wrote.

What the story's own statements leave open, and this arm therefore does too:

- nothing carries a generation, so a worker that was paused past its lease still writes;
- a heartbeat that finds no row to renew tells nobody;
- whoever is paused, partitioned or stuck is noticed by the lease alone;
- a cancellation that arrives during the last step comes too late: no boundary is left;
- there are no limits, no signals and no budget.
"""
