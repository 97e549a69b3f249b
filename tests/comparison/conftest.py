"""A cluster of real processes and a real world for each test."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from comparison.cluster import Cluster, Process
from comparison.world.client import WorldClient

from .stored import keep_comparison


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with Cluster.open(tmp_path / "logs") as cluster:
        yield cluster


@pytest.fixture
async def world(cluster: Cluster, tmp_path: Path) -> AsyncIterator[WorldClient]:
    command = [sys.executable, "-m", "tests.comparison.tiny_world", str(tmp_path / "ledger.jsonl")]
    process = await cluster.start("world", command, {}, ready=r"^world (\S+)")
    async with WorldClient.following(process.ready.result()) as client:
        yield client


async def start_caller(cluster: Cluster, world: WorldClient, key: str, fence: str) -> Process:
    """A process that makes one call under `key` and `fence`."""
    command = [sys.executable, "-m", "tests.comparison.caller", world.url, key, fence]
    name = f"caller-{len(cluster.running):02d}-{fence}"
    return await cluster.start(name, command, {}, ready=r"^caller (\d+) ready")


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """A full comparison whose scene and arms were all done when it was interrupted."""
    home = tmp_path / "compare-full" / "1"
    keep_comparison(home)
    return home
