"""Progress apart from heartbeats: what effects said about their work, brought home by the loop.

A heartbeat says that a process runs; it comes from a thread and would go on forever. Progress is
stamped only here and by records, from the event loop that does the work, and only for runs whose
effects have beaten since the last time. Others take away what makes none (`progress_timeout`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import psycopg

from hand_rolled.database import TRANSIENT, Database
from hand_rolled.effects import Beat, Effects
from hand_rolled.entries import Place, as_json
from hand_rolled.lease import Lease

log = logging.getLogger("hand_rolled.worker")

# Progress and checkpoints that beats left behind since the last time, for all runs of a worker.
PROGRESS = """
WITH beat AS MATERIALIZED (
    SELECT * FROM unnest(%(run_ids)s::text[], %(generations)s::bigint[], %(batches)s::int[],
                         %(positions)s::int[], %(checkpoints)s::text[])
             AS b (run_id, generation, batch, position, checkpoint)
), locked AS MATERIALIZED (
    SELECT r.run_id FROM runs r
    WHERE r.lease_owner = %(worker)s
      AND (r.run_id, r.lease_generation) IN (SELECT run_id, generation FROM beat)
    ORDER BY r.run_id
    FOR NO KEY UPDATE
), held AS (
    UPDATE runs r SET progress_at = clock_timestamp(), version = r.version + 1
    FROM locked WHERE r.run_id = locked.run_id
    RETURNING r.run_id
)
INSERT INTO open_steps AS o (run_id, batch, position, checkpoint)
SELECT beat.run_id, beat.batch, beat.position, beat.checkpoint::json
FROM beat JOIN held USING (run_id)
WHERE beat.checkpoint IS NOT NULL
ON CONFLICT (run_id, batch, position) DO UPDATE SET checkpoint = excluded.checkpoint
"""


class Progress:
    """Brings the beats of one worker's effects home."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner
        self._told: dict[tuple[str, int, Place], int] = {}

    async def stamp(self, running: Sequence[tuple[Lease, Effects]]) -> None:
        """Write what is new. A failure is left to the next time: no lease depends on it."""
        told: dict[tuple[str, int, Place], int] = {}
        news: list[tuple[Lease, Place, Beat]] = []
        for lease, effects in running:
            for place, beat in effects.beats.items():
                key = (lease.run_id, lease.generation, place)
                told[key] = beat.news
                if self._told.get(key) != beat.news:
                    news.append((lease, place, beat))
        if not news:
            return
        try:
            await self._database.fetch(PROGRESS, **_columns(self._owner, news))
        except (psycopg.Error, *TRANSIENT) as error:
            log.warning("%s: progress not stamped: %s", self._owner, error)
        else:
            self._told = told


def _columns(owner: str, news: Sequence[tuple[Lease, Place, Beat]]) -> dict[str, Any]:
    return {
        "worker": owner,
        "run_ids": [lease.run_id for lease, _, _ in news],
        "generations": [lease.generation for lease, _, _ in news],
        "batches": [place.batch for _, place, _ in news],
        "positions": [place.position for _, place, _ in news],
        "checkpoints": [
            None if beat.detail is None else as_json(beat.detail) for _, _, beat in news
        ],
    }
