"""Faults beyond a kill, a pause and a silence: each can be brought, confirmed and healed.

| kind        | what is done                                                     | module    |
|-------------|------------------------------------------------------------------|-----------|
| mute        | nothing that a worker says reaches its server                    | `network` |
| deaf        | nothing that its server says reaches a worker                    | `network` |
| reset       | a worker's connections to its server end with a RST              | `network` |
| half close  | the server is told that the worker will say no more              | `network` |
| cut         | a step is recorded and committed, and its reply never arrives    | `network` |
| sessions    | the database ends the sessions of all workers                    | `servers` |
| restart     | the server crashes under everybody, and comes back on its data   | `servers` |
| stall       | a worker's event loop stands still, its other threads do not     | `workers` |
| drain       | a worker is asked to stop (SIGTERM), as by a deployment          | `workers` |
| idle pause  | a worker that has nothing to do is paused while it asks for work | `workers` |
| skew        | a worker's wall clock is minutes off                             | `skew`    |

The model stays reachable in all of them. `trial.break_once` brings one of them to one arm and
leaves the same evidence as a campaign; `overload` is a load, not a fault.
"""
