"""`explain` quotes the code and shows plans that PostgreSQL really chose."""

from __future__ import annotations

from pathlib import Path

import pytest

import hand_rolled
from hand_rolled.catalogue import sql_of, statements
from hand_rolled.explain import NOTES, TOPICS, explain, notes_of, render
from tests.hand_rolled.bench import Store
from two_workers import BadInput


@pytest.mark.parametrize("topic", TOPICS)
async def test_every_topic_can_be_explained(store: Store, topic: str) -> None:
    explained = await explain(store.database.settings, topic, backlog=500)
    text = render(explained)
    for it in explained:
        assert it.statement.where in text
        assert any("actual rows" in line for line in it.plan)
        assert all(reason in text for _, reason in it.notes)


async def test_the_storys_claim_walks_all_old_runs_and_ours_reads_what_it_takes(
    store: Store,
) -> None:
    story, ours, *_ = await explain(store.database.settings, "claim", backlog=5000)
    assert any("Rows Removed by Filter: 5050" in line for line in story.plan)
    assert not any("Rows Removed" in line or "Sort" in line for line in ours.plan)
    assert any("Index Scan using runs_" in line for line in ours.plan)


async def test_explaining_touches_no_real_run(store: Store) -> None:
    run_id = await store.enqueue()
    before = await store.row(run_id)
    await explain(store.database.settings, "claim", backlog=100)
    assert await store.row(run_id) == before
    assert await store.value("SELECT count(*) FROM runs") == 1
    assert await store.value("SELECT count(*) FROM ownership") == 0


async def test_an_unknown_topic_names_the_known_ones(store: Store) -> None:
    with pytest.raises(BadInput, match="claim, heartbeat, fence"):
        await explain(store.database.settings, "magic")
    with pytest.raises(BadInput, match="claim-within-limits"):
        sql_of("magic")


@pytest.mark.parametrize("name", NOTES)
def test_each_note_stands_at_a_line_that_exists(name: str) -> None:
    statement = sql_of(name)
    for number, _ in notes_of(statement):
        assert 1 <= number <= len(statement.text.splitlines())


def test_the_catalogue_points_to_the_line_of_each_statement() -> None:
    folder = Path(hand_rolled.__file__).parent.parent
    for statement in statements().values():
        path, _, line = statement.where.rpartition(":")
        found = (folder / path).read_text().splitlines()[int(line) - 1]
        assert found.startswith(f"{statement.name.upper().replace('-', '_')} = ")
    assert {"claim", "reclaim", "heartbeat", "record", "cancel", "story-claim"} <= set(statements())
