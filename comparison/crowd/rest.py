"""What an engine still counts when its last run has ended: it must be nothing, or a leak.

hand_rolled counts in columns and keeps a row for each call and each reservation that it counted,
so a recount is one statement. Temporal's gate holds the permits themselves: at rest it has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import psycopg
from psycopg.rows import dict_row

from comparison.crowd.app import POOL
from comparison.crowd.notes import Count, Rest
from comparison.crowd.script import members
from temporal_version.engine import TemporalEngine
from temporal_version.messages import GateState
from temporal_version.settings import read
from two_workers import Engine

COUNTS = """
    SELECT 'pool:' || pool AS resource, calls AS counted,
           (SELECT count(*) FROM pool_calls c WHERE c.pool = p.pool) AS held
    FROM pools p WHERE pool = %(pool)s
    UNION ALL
    SELECT 'tenant:' || tenant, active,
           (SELECT count(*) FROM runs r WHERE r.tenant = t.tenant AND r.holds_slot)
    FROM tenants t WHERE tenant = ANY (%(tenants)s)
    UNION ALL
    SELECT 'active', active, (SELECT count(*) FROM runs WHERE holds_slot) FROM active_total
    ORDER BY 1
"""
RESERVED = """
    SELECT (SELECT coalesce(sum(reserved), 0) FROM runs)::bigint
           + (SELECT coalesce(sum(amount), 0) FROM reservations)::bigint AS reserved
"""

SETTLING = 10.0
"""Seconds in which what dead workers held must have come back: a sweep is a poll away."""
LOOK = 0.1  # seconds between two looks: nothing announces it


async def at_rest(engine: Engine, env: Mapping[str, str]) -> Rest:
    """What is counted once nothing is held any more, or after `SETTLING` what still is."""
    async with asyncio.timeout(SETTLING + 60):
        deadline = asyncio.get_running_loop().time() + SETTLING
        while True:
            rest = await _look(engine, env)
            leaks = [count for count in rest.counts if count.leaks]
            if not (leaks or rest.reserved) or asyncio.get_running_loop().time() > deadline:
                return rest
            await asyncio.sleep(LOOK)


async def _look(engine: Engine, env: Mapping[str, str]) -> Rest:
    match engine:
        case TemporalEngine():
            gate = read(env).gate
            handle = engine.client.get_workflow_handle(gate)
            state: GateState = await handle.query("state", result_type=GateState)
            held = len(state.holders) + len(state.waiting)
            return Rest(counts=(Count(resource=gate, counted=held, held=0),), reserved=None)
        case _:
            ours = {"pool": POOL, "tenants": sorted({member.tenant for member in members()})}
            async with await psycopg.AsyncConnection.connect(
                env["DATABASE_URL"], row_factory=dict_row, autocommit=True
            ) as connection:
                counts = await (await connection.execute(COUNTS, ours)).fetchall()
                reserved = await (await connection.execute(RESERVED)).fetchone()
            assert reserved is not None
            return Rest(counts=tuple(Count(**row) for row in counts), reserved=reserved["reserved"])
