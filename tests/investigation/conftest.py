from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from investigation.app import build_app
from investigation.settings import Settings
from investigation.tools import run_tool
from tests.investigation.memory_engine import Driver
from tests.investigation.misbehaving_vendor import Vendor, vendor


@pytest.fixture
async def misbehaving() -> AsyncIterator[Vendor]:
    async with vendor() as it:
        yield it


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A small corpus of two services, with one burst of trouble."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    calm = [f"2026-01-05 10:0{n // 60}:{n % 60:02d},000 INFO all is well {n}" for n in range(120)]
    burst = [f"2026-01-05 10:02:{n:02d},000 ERROR disk is full on node-{n % 3}" for n in range(30)]
    (folder / "api.log").write_text("\n".join(calm + burst) + "\n")
    (folder / "quiet.log").write_text("2026-01-05 10:00:00,000 INFO nothing to see\n")
    return folder


def driver(**settings: Any) -> Driver:
    """An engine in memory for the app with these settings, whatever the environment says."""
    return Driver(build_app(Settings(_env_file=None, **settings)))


def question(corpus: Path, **more: Any) -> dict[str, Any]:
    return {"text": "why are requests failing?", "corpus": str(corpus), **more}


def ask(corpus: Path, tool: str, **arguments: Any) -> Any:
    result = run_tool(str(corpus), tool, arguments)
    assert result.ok, result.text
    return json.loads(result.text)


def refusal(corpus: Path, tool: str, **arguments: Any) -> str:
    result = run_tool(str(corpus), tool, arguments)
    assert not result.ok
    return result.text
