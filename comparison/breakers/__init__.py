"""The faults: each can be brought, confirmed and healed.

| kind        | what is done                                                     | module    |
|-------------|------------------------------------------------------------------|-----------|
| kill        | a worker dies without a word (SIGKILL)                           | `workers` |
| kill+cancel | the same, and then its orphan is cancelled                       | `workers` |
| pause       | a worker stands still until somebody else has its work           | `workers` |
| stall       | a worker's event loop stands still, its other threads do not     | `workers` |
| drain       | a worker is asked to stop (SIGTERM), as by a deployment          | `workers` |
| silence     | nothing passes between a worker and its server                   | `network` |
| mute        | nothing that a worker says reaches its server                    | `network` |
| deaf        | nothing that its server says reaches a worker                    | `network` |
| reset       | a worker's connections to its server end with a RST              | `network` |
| half-close  | the server is told that the worker will say no more              | `network` |
| cut         | a step is recorded and committed, and its reply never arrives    | `network` |
| sessions    | the database ends the sessions of all workers                    | `servers` |
| restart     | the server crashes under everybody, and comes back on its data   | `servers` |
| skew        | a worker joins whose wall clock is minutes off                   | `skew`    |

The model stays reachable in all of them. `points` says where a worker is when it is struck,
`catalogue` which fault can be brought where. `once` brings one fault to one arm and leaves the
same evidence as a campaign; `overload` is a load, not a fault.
"""
