"""A headless Chromium for the tests of the page, and the service as a process."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.app_bench import clean_environment

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SHORT = {
    "HAND_ROLLED_LEASE_TTL": "8",
    "HAND_ROLLED_HEARTBEAT_INTERVAL": "0.5",
    "TEMPORAL_VERSION_HEARTBEAT_TIMEOUT": "8",
    "TEMPORAL_VERSION_HEARTBEAT_THROTTLE": "0.5",
}


@asynccontextmanager
async def served(*arguments: str, **env: str) -> AsyncIterator[str]:
    """`two-workers serve` on a free port, as a process; yields its address."""
    command = [sys.executable, "-m", "two_workers.cli", "serve", "--port", "0", *arguments]
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=Path(__file__).parents[2],
        env={**clean_environment(), **SHORT, "PYTHONUNBUFFERED": "1", **env},
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(90):
            line = (await process.stdout.readline()).decode()
        assert line.startswith("serving on "), line
        yield line.split()[-1]
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(30):
                await process.wait()
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0, "asked to stop, it stops in the orderly way"


@asynccontextmanager
async def browser_page(
    address: str, *, width: int, height: int = 844, first: str = "h1"
) -> AsyncIterator[Any]:
    """A page at `address`, once it shows `first`. Leaving fails if the page had an error."""
    from playwright.async_api import async_playwright

    errors: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = await browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        await page.goto(address)
        await page.wait_for_selector(first)
        yield page
        await browser.close()
    assert errors == []
