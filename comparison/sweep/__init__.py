"""One knob turned: what a longer lease buys, and what it costs, on both engines.

A lease (the heartbeat timeout) trades three things against each other:

- *detection*: from a worker's death until somebody else has its work; longer with the lease
- *mistakes*: work taken from a worker that lives and is only slow; rarer with the lease
- *load*: what heartbeats write while nothing happens; less with the lease

Everything else follows the lease: heartbeats come four times as often, on both engines. Each round
gives every victim one run and no room for another, so that each fault is a sample of its own; a
survivor with room for all comes only then. A third of the victims is killed, a third stopped
(SIGSTOP), and of a third the event loop stands still, each at a random moment between two
heartbeats; stops and stalls last from a tenth to one and a half times the lease.

`settings` makes the arms, `round` carries one round out, `main` goes through arms and leases,
`point` holds what was found, and `show` makes a table and a plot of it.
"""
