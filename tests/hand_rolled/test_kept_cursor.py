"""A pool of one connection, so that every statement here goes through the same kept cursor."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from hand_rolled.settings import Settings
from tests.hand_rolled.bench import Store


@pytest.fixture(params=[False, True], ids=["as read", "fast"])
def settings(request: pytest.FixtureRequest, url: str) -> Settings:
    return Settings(database_url=url, pool_size=1, notify=False, fast=request.param)


async def test_what_it_learned_of_one_statement_does_not_change_the_next(store: Store) -> None:
    values: list[tuple[str, Any]] = [
        ("text", "one"), ("int", 7), ("bigint", 2**40), ("text", None), ("int[]", [1, 2]),
        ("text[]", []), ("text[]", ["a"]), ("interval", timedelta(seconds=3)), ("json", None),
        ("float8", 0.5), ("boolean", True), ("int", None), ("text", "two"),
    ]  # fmt: skip
    for _ in range(4):  # the later rounds are prepared on the fast path
        for of_type, value in values:
            asked = f"SELECT %(value)s::{of_type} AS it"
            rows = await store.database.fetch(asked, value=value)  # type: ignore[arg-type] # psycopg asks for a literal
            assert rows == [{"it": value}]


async def test_it_serves_the_next_after_nothing_after_an_error_and_after_a_cancellation(
    store: Store,
) -> None:
    fetch = store.database.fetch
    one = "SELECT 1 AS it, pg_backend_pid() AS backend"
    [first] = await fetch(one)
    assert await fetch("UPDATE runs SET version = 1 WHERE false") == []
    assert await fetch("SELECT FROM runs") == []
    with pytest.raises(psycopg.errors.DivisionByZero):
        await fetch("SELECT 1 / 0")
    assert await fetch(one) == [first], "the same connection, and not the answer to another"
    sleeping = asyncio.create_task(fetch("SELECT pg_sleep(60)"))
    await store.until(
        lambda: store.value(
            "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' "
            "AND datname = current_database() AND state = 'active'"
        )
    )
    sleeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeping
    [last] = await fetch(one)
    assert last["it"] == 1
