"""How fast, beside what: this project against its Python peers and against PostgreSQL itself.

One run measures everything on one embedded PostgreSQL with fsync and synchronous_commit on.
Throughput is compared in *rounds*: in each round every contender works once, one after the other,
each in a process and a database of its own. What is judged is the ratio within a round, because
a shared machine is slower at one moment than at another, but hardly within one round.

Read in this order: `targets.py` (what is measured and what must be reached), `peers/` (the
contenders, each with its settings), `rounds.py` (the interleaving), `ownership/` (what a killed,
a paused and a cancelled worker cost, with `peers/holders`), `report.py` (the table, the JSON, the
pages' sections). `measured/` keeps the reports that the pages' figures come from.
"""
