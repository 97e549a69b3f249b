"""The investigation app for workers that die a second after their start, whatever they do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from investigation.app import APP as INVESTIGATION


@asynccontextmanager
async def _mortal() -> AsyncIterator[Any]:
    async with INVESTIGATION.resources() as resources:
        asyncio.get_running_loop().call_later(1.0, os._exit, 3)
        yield resources


APP = replace(INVESTIGATION, resources=_mortal)
