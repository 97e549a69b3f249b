"""Connections: how they are opened, bounded in time, and retried.

- Every statement is its own transaction (autocommit), so a worker that is paused between two
  statements holds no lock. The few transactions are bounded by `transaction_timeout` on the server.
- Limits are set by SET after connecting, not as startup parameters, which poolers refuse.
- No prepared statements, except on the fast path: behind a pooler in transaction mode they land on
  another backend.
- A connection of the pool keeps its cursor, and the cursor what it learned about types: made anew
  for each statement, it would take a sixth of what a claim costs its worker. A time limit without a
  task of its own, and column names that are asked for once, save another eighth.
- A half-open connection never answers. TCP keepalives find a dead peer; `query_timeout` on the
  client finds a peer that acknowledges and stays silent.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, TupleRow, dict_row, tuple_row
from psycopg.waiting import wait_async
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from hand_rolled.settings import Settings
from two_workers.errors import EngineUnavailable

T = TypeVar("T")
Row = DictRow
Connection = psycopg.AsyncConnection[DictRow]

BOUNDS = """
SELECT set_config('statement_timeout', %(statement)s, false),
       set_config('lock_timeout', %(statement)s, false),
       set_config('idle_in_transaction_session_timeout', %(statement)s, false),
       CASE WHEN current_setting('server_version_num')::int >= 170000
            THEN set_config('transaction_timeout', %(statement)s, false) END
"""

# A prepared statement may keep its plan, also one that was made while a table was empty and reading
# all of it was the best way. So a connection forgets its plans after so many seconds.
PLANS_LAST = 1.0

# Seconds that the server has to end a statement that nobody waits for any more.
COURTESY = 0.2

# The pool's own pauses between two tries are 1, 2, 4 seconds: a restart of the server that takes
# half a second would cost a worker the leases of all its runs. Ours begin with so many seconds, and
# grow with the time that has passed.
RECONNECT, RECONNECT_MOST = 0.1, 2.0

# Worth another try: the connection or the server went away, or we lost a deadlock.
TRANSIENT = (
    errors.OperationalError,  # includes AdminShutdown, CannotConnectNow, QueryCanceled
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.InterfaceError,
    PoolTimeout,
    TimeoutError,
)


def connect_arguments(settings: Settings, *, application: str) -> dict[str, Any]:
    """Keyword arguments for every connection of this engine."""
    return {
        "autocommit": True,
        "row_factory": dict_row,
        "prepare_threshold": 2 if settings.fast else None,
        "connect_timeout": max(2, round(settings.connect_timeout)),
        "application_name": f"two-workers {application}"[:63],
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": int(settings.query_timeout * 1000),
    }


class Session(psycopg.AsyncConnection[DictRow]):
    """A connection that soon lets go of whoever is cancelled or out of time.

    The driver asks the server to cancel the statement, and waits for up to ten seconds. We wait for
    `COURTESY`, then close the connection. So the statement may still be carried out, like one whose
    answer was lost.
    """

    kept_cursor: psycopg.AsyncCursor[TupleRow]
    """Stays from one statement to the next, as long as the connection is in a pool."""

    planned_at: float
    """When it last forgot its plans, on the monotonic clock."""

    async def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Do on this connection what the driver asks for. Called by the driver alone."""
        try:
            return await wait_async(gen, self.pgconn.socket, interval, timeout)
        except asyncio.CancelledError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self._let_go(gen)
            raise

    async def _let_go(self, gen: PQGen[Any]) -> None:
        try:
            async with asyncio.timeout(COURTESY):
                await self.cancel_safe()
                await wait_async(gen, self.pgconn.socket, COURTESY)
        except errors.QueryCanceled:
            return
        except (psycopg.Error, TimeoutError, OSError, asyncio.CancelledError):
            self.pgconn.finish()  # in the middle of an answer it is of no further use


async def open_connection(settings: Settings, *, application: str) -> Connection:
    """One connection outside the pool. Raises `EngineUnavailable`."""
    try:
        async with asyncio.timeout(settings.connect_timeout):
            return await Session.connect(
                settings.database_url, **connect_arguments(settings, application=application)
            )
    except (psycopg.Error, TimeoutError, OSError) as error:
        raise unavailable(error) from error


def unavailable(error: BaseException) -> EngineUnavailable:
    """The one line that a person sees when the database does not answer."""
    found = str(error).strip().splitlines()[:1] or ["no answer in time"]
    return EngineUnavailable(
        f"PostgreSQL at DATABASE_URL cannot be used: {found[0]}; "
        "check the address, and that the server runs and accepts it"
    )


class Database:
    """A pool of connections that runs one statement at a time, each its own transaction."""

    def __init__(self, settings: Settings, *, application: str) -> None:
        self.settings = settings
        self._columns: dict[str, list[str]] = {}
        self._bounds = {"statement": f"{max(1, int(settings.query_timeout * 1000))}ms"}
        self._pool: AsyncConnectionPool[Session] = AsyncConnectionPool(
            settings.database_url,
            connection_class=Session,
            kwargs=connect_arguments(settings, application=application),
            min_size=1,
            max_size=settings.pool_size,
            timeout=settings.query_timeout,
            configure=self._configure,
            reconnect_timeout=RECONNECT,
            reconnect_failed=self._connect_again,
            open=False,
        )
        self._lost_at: float | None = None

    async def _configure(self, session: Session) -> None:
        await session.execute(BOUNDS, self._bounds)
        session.kept_cursor = session.cursor(row_factory=tuple_row)
        session.planned_at = time.monotonic()
        self._lost_at = None

    async def _connect_again(self, pool: AsyncConnectionPool[Session]) -> None:
        now = time.monotonic()
        if self._lost_at is None:
            self._lost_at = now
        passed = now - self._lost_at
        await asyncio.sleep(min(max(RECONNECT, passed / 3), RECONNECT_MOST))
        await pool.check()  # which has it try once more

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Database]:
        """Connect and keep the pool open. Raises `EngineUnavailable` if nobody answers."""
        probe = await open_connection(self.settings, application="probe")
        await probe.close()
        await self._pool.open()
        try:
            yield self
        finally:
            await self._pool.close()

    async def fetch(self, statement: LiteralString, /, **parameters: Any) -> list[Row]:
        """Run one statement and return its rows. A transient error reaches the caller."""
        return await bounded(self.client_timeout, self._run(statement, parameters))

    async def fetch_unprepared(self, statement: LiteralString, /, **parameters: Any) -> list[Row]:
        """The same, planned for this one execution: a plan made while a table was small would be
        kept when it has grown."""
        return await bounded(self.client_timeout, self._run(statement, parameters, prepare=False))

    @property
    def client_timeout(self) -> float:
        """Seconds until we stop waiting for a statement; the server stops a little earlier."""
        return self.settings.query_timeout * 1.2

    async def _run(
        self, statement: LiteralString, parameters: dict[str, Any], *, prepare: bool | None = None
    ) -> list[Row]:
        # Not `self._pool.connection()`: its commit, on the way out, is no use under autocommit and
        # takes as long as all else that Python does here.
        session = await self._pool.getconn()
        try:
            now = time.monotonic()
            if self.settings.fast and now - session.planned_at > PLANS_LAST:
                await session.execute("DISCARD PLANS")
                session.planned_at = now
            cursor = await session.kept_cursor.execute(statement, parameters, prepare=prepare)
            return [] if cursor.rownumber is None else await self._rows(statement, cursor)
        finally:
            await self._pool.putconn(session)

    async def _rows(self, statement: str, cursor: psycopg.AsyncCursor[TupleRow]) -> list[Row]:
        names = self._columns.get(statement)
        if names is None:
            names = [column.name for column in cursor.description or ()]
            self._columns[statement] = names
        return [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]

    async def fetch_one(self, statement: LiteralString, /, **parameters: Any) -> Row | None:
        """The first row, or None."""
        rows = await self.fetch(statement, **parameters)
        return rows[0] if rows else None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Several statements as one. Bounded on the server; use `bounded` around it here."""
        async with self._pool.connection() as connection, connection.transaction():
            yield connection


async def bounded(seconds: float, work: Awaitable[T]) -> T:
    """`work`, or `TimeoutError` after so many seconds, even if nobody answers any more."""
    async with asyncio.timeout(seconds):
        return await work


PATIENCE = 15.0  # seconds of trying again, where no lease says how long


async def persistently(
    attempt: Callable[[], Awaitable[T]], *, until: Callable[[], float] | None = None
) -> T:
    """Repeat `attempt` over transient errors, with back-off, while `until()` seconds remain
    (15 if not given).

    Only for statements that are safe to repeat after a commit whose answer was lost.
    """
    ends = time.monotonic() + PATIENCE
    remaining = until or (lambda: ends - time.monotonic())
    delay = 0.02
    while True:
        try:
            return await attempt()
        except TRANSIENT:
            if remaining() <= delay:
                raise
        await asyncio.sleep(delay * random.uniform(0.5, 1.5))
        delay = min(1.0, delay * 2)
