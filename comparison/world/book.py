"""Writes the ledger: sequence numbers, times, fences, and waking whoever follows."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from pathlib import Path

from comparison.ledger import Begin, CallKind, End, EndOutcome, Identity, Record, dump
from two_workers import Fence


class Book:
    """The one writer of a ledger file. Not thread-safe: it lives on the world's event loop."""

    def __init__(self, path: Path) -> None:
        # Unbuffered and appended: a line is in the file (not on the disk) before the call goes on.
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._lines: list[str] = []
        self._calls = itertools.count(1)
        self._newest_fence: dict[str, Fence] = {}
        self._written = asyncio.Event()

    def begin(
        self, kind: CallKind, name: str, input_hash: str, who: Identity
    ) -> tuple[Begin, bool]:
        """Record that a call arrived. The flag is False when its fence is older than one seen."""
        newest = max(self._newest_fence.get(who.key, who.fence), who.fence)
        self._newest_fence[who.key] = newest
        begin = Begin(
            seq=self._next_seq(),
            t_ns=time.monotonic_ns(),
            call=next(self._calls),
            kind=kind,
            name=name,
            input_hash=input_hash,
            identity=who,
        )
        self._append(begin)
        return begin, who.fence >= newest

    def end(
        self,
        begin: Begin,
        outcome: EndOutcome,
        *,
        delivered: bool,
        tokens_in: int = 0,
        tokens_out: int = 0,
        micro_usd: int = 0,
    ) -> None:
        """Record how a call was dealt with, and what it cost."""
        self._append(
            End(
                seq=self._next_seq(),
                t_ns=time.monotonic_ns(),
                call=begin.call,
                outcome=outcome,
                delivered=delivered,
                tokens_in=tokens_in,
                tokens_out=tokens_out,
                micro_usd=micro_usd,
            )
        )

    async def after(self, seq: int, *, timeout: float, limit: int = 5_000) -> list[str]:
        """Lines past `seq`, waiting up to `timeout` seconds for the first of them."""
        if seq >= len(self._lines):
            try:
                async with asyncio.timeout(timeout):
                    await self._written.wait()
            except TimeoutError:
                return []
        return self._lines[seq : seq + limit]  # seq n is at index n - 1

    def close(self) -> None:
        os.close(self._file)

    def _next_seq(self) -> int:
        return len(self._lines) + 1

    def _append(self, record: Record) -> None:
        line = dump(record)
        os.write(self._file, line.encode() + b"\n")
        self._lines.append(line)
        self._written.set()
        self._written = asyncio.Event()
