"""The mapping: each concept of a scheduler, by hand and on Temporal, with evidence from a run.

- `concepts/*.toml`  what there is to say about each concept; the data behind everything here
- `concept`          the record, and how the files are read
- `references`       `module:NAME` in a record → file, line and text, resolved when it is shown
- `scenarios/`       short runs on both engines with real workers, and what was seen of them
- `evidence/*.json`  what those runs left behind; `make evidence` makes them anew
- `table`, `screen`, `page`  three ways to look at it: a terminal table, one concept, one web page
"""
