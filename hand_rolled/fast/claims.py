"""Claims that begin where the last one left off, so that a held snapshot does not slow them down.

While somebody holds a snapshot, PostgreSQL keeps the index entries of all runs that were claimed
since, and every claim from the head of the queue steps over all of them. So remember, for each
priority, the place of the last run that was taken. What lies before it was taken as well, by this
worker or by another; a new run gets in line behind it. The next claim begins there.

What can come to lie before a mark: a run that returns to the queue (handed over, woken, resumed), a
start that was committed late, a claim that was rolled back. None of them is stranded, because

- a mark holds for `REST` times as long as the walk from the head that made it, and never longer
  than `POLLS` polls. Then the next claim walks from the head again. So walks take at most one part
  in `REST` of a worker's time, until a walk takes so long that the polls bound it. While nobody
  holds a snapshot, a walk takes about one millisecond, and a mark holds for tens of them.
- a walk that finds such a run makes no mark, so the next claim looks for more of them.
- a claim that finds less than it wanted forgets all marks and looks again from the head. Zero rows
  mean what they mean in the readable path.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from hand_rolled.claim import Claimed, Claims
from hand_rolled.database import Database, Row
from hand_rolled.lease import clock

REST, POLLS = 30, 2

# pending → running. CLAIM of the readable path, but with a place to begin at in each priority's
# queue. Best priority first: a nested loop keeps the order of the list. Under limits it takes
# nothing, since there the tenants take turns.
CLAIM_BEHIND = """
WITH me AS MATERIALIZED (
    SELECT worker_id FROM workers
    WHERE worker_id = %(worker)s AND dead_at IS NULL AND NOT counted
    FOR SHARE
), head AS MATERIALIZED (
    SELECT next.run_id
    FROM (VALUES (1, %(ready_1)s::timestamptz, %(run_1)s::text),
                 (2, %(ready_2)s, %(run_2)s),
                 (3, %(ready_3)s, %(run_3)s),
                 (4, %(ready_4)s, %(run_4)s),
                 (5, %(ready_5)s, %(run_5)s)) AS place (priority, ready_at, run_id)
    CROSS JOIN LATERAL (
        SELECT r.run_id
        FROM runs r
        WHERE r.status = 'pending' AND r.kind = %(kind)s AND r.suspect = false
          AND r.priority = place.priority
          -- A row comparison, so that the index is entered at this place.
          AND (r.ready_at, r.run_id) > (coalesce(place.ready_at, '-infinity'),
                                        coalesce(place.run_id, ''))
          AND (r.code_version IS NULL OR r.code_version = %(code)s)
          AND NOT (%(worker)s = ANY (r.unfit_workers))
          AND EXISTS (SELECT FROM me)
        ORDER BY r.ready_at, r.run_id
        LIMIT %(want)s
        FOR NO KEY UPDATE OF r SKIP LOCKED
    ) next
    LIMIT %(want)s
), claimed AS (
    UPDATE runs r
    SET status = 'running',
        lease_owner = %(worker)s,
        lease_generation = r.lease_generation + 1,
        lease_expires_at = clock_timestamp() + %(ttl)s::interval,
        heartbeat_at = clock_timestamp(),
        progress_at = clock_timestamp(),
        lease_alone = r.suspect,
        code_version = coalesce(r.code_version, %(code)s),
        run_after = NULL,
        version = r.version + 1
    FROM head
    WHERE r.run_id = head.run_id
    RETURNING r.run_id, r.kind, r.payload, r.budget, r.lease_generation, r.lease_alone, r.version,
              r.priority, r.ready_at
), logged AS (
    INSERT INTO ownership (run_id, version, lease_generation, event, owner)
    SELECT run_id, version, lease_generation, 'claimed', %(worker)s FROM claimed
)
SELECT run_id, kind, payload, budget, lease_generation, lease_alone, priority, ready_at
FROM claimed
"""


# The same for one run, which in a busy worker is the rule. Where LIMIT is a parameter, PostgreSQL
# expects a tenth of the backlog, and plans each claim anew, for longer than a third of the server's
# time. It keeps the plan of this one. The key is a value and not a join, so that the plan finds the
# run by it.
CLAIM_ONE_BEHIND = CLAIM_BEHIND.replace("LIMIT %(want)s", "LIMIT 1").replace(
    "FROM head\n    WHERE r.run_id = head.run_id", "WHERE r.run_id = (SELECT run_id FROM head)"
)


class Spot(NamedTuple):
    """Where a run stands among those of its priority."""

    ready_at: datetime
    run_id: str


HEAD = Spot(datetime.min.replace(tzinfo=UTC), "")


Places = dict[str, str | None]
"""Where to begin in the queue of each priority, as parameters of `CLAIM_BEHIND`."""

AT_THE_HEAD: Places = {
    f"{column}_{priority}": None for priority in (1, 2, 3, 4, 5) for column in ("ready", "run")
}


def behind(spots: Iterable[tuple[int, Spot]]) -> Places:
    """Behind these spots, each of a priority; at the head where there is none."""
    places = AT_THE_HEAD.copy()
    for priority, spot in spots:
        places[f"ready_{priority}"] = spot.ready_at.isoformat()
        places[f"run_{priority}"] = spot.run_id
    return places


@dataclass(frozen=True)
class Mark:
    """Where to begin in one priority's queue, until the clock shows `until`."""

    place: Spot
    until: float


@dataclass
class Marks:
    """What one worker remembers of the queue of one kind."""

    longest: float
    _of: dict[int, Mark] = field(default_factory=dict)

    def places(self, now: float) -> Places:
        """Behind the marks that hold."""
        return behind((it, mark.place) for it, mark in self._of.items() if now < mark.until)

    def advance(self, rows: Iterable[Row], asked: float, answered: float) -> None:
        """Note what a claim took that was asked at one time and answered at the other."""
        last: dict[int, Spot] = {}
        for row in rows:
            place = Spot(row["ready_at"], row["run_id"])
            last[row["priority"]] = max(place, last.get(row["priority"], HEAD))
        until = answered + min(REST * (answered - asked), self.longest)
        for priority, place in last.items():
            mark = self._of.get(priority, Mark(HEAD, asked))
            if place >= mark.place:
                walked = mark.until <= asked
                self._of[priority] = Mark(place, until if walked else mark.until)

    def forget(self) -> None:
        """Begin at the head everywhere."""
        self._of.clear()


class FastClaims(Claims):
    """Claims pending runs for one worker, from its marks. Not to be called twice at a time."""

    def __init__(self, database: Database, worker: str) -> None:
        super().__init__(database, worker)
        self._marks: dict[str, Marks] = {}
        # As text, since a timedelta takes longer to send than all other parameters together.
        self._lease = f"{database.settings.lease_ttl:f} seconds"

    async def claim(
        self, kind: str, code: str, *, want: int, suspect: bool = False
    ) -> list[Claimed]:
        """Up to `want` runs of one kind, best priority first."""
        if suspect or self._counted:
            return await super().claim(kind, code, want=want, suspect=suspect)
        marks = self._marks.setdefault(kind, Marks(POLLS * self._database.settings.poll_interval))
        asked = clock()
        places = marks.places(asked)
        rows = await self._claim_behind(places, kind, code, want)
        found = [Claimed.of(row) for row in rows]
        if len(found) == want:
            marks.advance(rows, asked, clock())
            return found
        marks.forget()
        if found and places == AT_THE_HEAD:
            return found
        return found + await super().claim(kind, code, want=want - len(found))

    async def _claim_behind(self, places: Places, kind: str, code: str, want: int) -> list[Row]:
        return await self._database.fetch(
            CLAIM_ONE_BEHIND if want == 1 else CLAIM_BEHIND,
            worker=self._worker,
            kind=kind,
            code=code,
            want=want,
            ttl=self._lease,
            **places,
        )
