"""A TCP proxy to put between a worker and the server, and to cut."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Proxy:
    """Forwards bytes until `silence`; then keeps every connection open and passes nothing."""

    def __init__(self, target: str) -> None:
        self._host, _, port = target.partition(":")
        self._port = int(port)
        self._flows = asyncio.Event()
        self._flows.set()
        self._pumps: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    @property
    def address(self) -> str:
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"{host}:{port}"

    def silence(self) -> None:
        """Nothing passes in either direction; nobody is told."""
        self._flows.clear()

    def heal(self) -> None:
        self._flows.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._host, self._port)
        for pair in ((reader, back), (there, writer)):
            pump = asyncio.create_task(self._pump(*pair))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError):
                while data := await reader.read(65536):
                    await self._flows.wait()
                    writer.write(data)
                    await writer.drain()
        finally:
            writer.transport.abort()
