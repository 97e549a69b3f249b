"""The store alone: claims against a large backlog, under a held snapshot, and beside pgbench."""
