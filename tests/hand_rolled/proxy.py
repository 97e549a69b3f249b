"""A TCP proxy between worker and database that can fall silent, reset, or swallow an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Proxy:
    """Forwards bytes while `open`; while not, both sides stay connected and hear nothing."""

    target: tuple[str, int]
    open: asyncio.Event = field(default_factory=asyncio.Event)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def silence(self) -> None:
        """Everything is accepted and nothing arrives, in either direction."""
        self.open.clear()

    def swallow_answers(self) -> None:
        """Requests arrive and are carried out; their answers do not come back."""
        self.answers.clear()

    def heal(self) -> None:
        self.open.set()
        self.answers.set()

    def reset(self) -> None:
        """Cut every connection."""
        for writer in self._writers:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward_reader, onward = await asyncio.open_connection(*self.target)
        self._writers |= {writer, onward}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._copy(reader, onward, self.open))
                group.create_task(self._copy(onward_reader, writer, self.open, self.answers))
        except* OSError:
            pass
        finally:
            for it in (writer, onward):
                self._writers.discard(it)
                it.transport.abort()

    async def _copy(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *gates: asyncio.Event
    ) -> None:
        while data := await source.read(65536):
            for gate in gates:
                await gate.wait()
            sink.write(data)
            await sink.drain()
        raise ConnectionError("one side closed")


@asynccontextmanager
async def proxy_to(host: str, port: int) -> AsyncIterator[Proxy]:
    proxy = Proxy((host, port))
    proxy.heal()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.reset()
