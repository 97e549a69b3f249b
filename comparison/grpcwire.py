"""Just enough of gRPC's wire to see which methods a worker calls, and what the server answers.

HTTP/2 sends frames (`length, type, flags, stream, payload`). A call is a stream that the client
opens with HEADERS; the method is the pseudo-header `:path`, compressed by HPACK, whose state runs
through the whole connection, so every header block must be read. The message follows in DATA. A
success is answered with DATA; an error has no message and comes in HEADERS, with its status.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from hpack import Decoder, HPACKError

from comparison.wire import Outcome, Request

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _CONTINUATION = 0x0, 0x1, 0x3, 0x9
_END_HEADERS, _PADDED, _PRIORITY = 0x4, 0x8, 0x20
_TABLE = 65_536  # bytes that either side may make the table of known headers
_GZIP = 16 + zlib.MAX_WBITS  # zlib's way to say that the data are gzip's
_NOT_FOUND = b"5"  # gRPC's status for what there is not, or not any more


@dataclass(frozen=True, slots=True)
class _Frame:
    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def content(self) -> bytes:
        """The payload of DATA or HEADERS without its padding and priority."""
        padding = self.payload[0] if self.flags & _PADDED else 0
        priority = self.kind == _HEADERS and self.flags & _PRIORITY
        start = bool(self.flags & _PADDED) + 5 * bool(priority)
        return self.payload[start : len(self.payload) - padding]


def message(body: bytes) -> bytes:
    """The message in what a call sent: after one byte that says if it is compressed, and four."""
    return zlib.decompressobj(_GZIP).decompress(body[5:]) if body[:1] == b"\1" else body[5:]


def _decoder() -> Decoder:
    decoder = Decoder()
    decoder.max_allowed_table_size = _TABLE
    return decoder


@dataclass
class _Side:
    """What one side sends, frame by frame; the last frame may be incomplete."""

    buffer: bytearray = field(default_factory=bytearray)
    decoder: Decoder = field(default_factory=_decoder)
    block: bytes = b""

    def frames(self, data: bytes) -> Iterator[_Frame]:
        self.buffer += data
        while len(self.buffer) >= 9:
            length = int.from_bytes(self.buffer[:3])
            if len(self.buffer) < 9 + length:
                return
            kind, flags = self.buffer[3:5]
            stream = int.from_bytes(self.buffer[5:9]) & 0x7FFF_FFFF
            frame = _Frame(kind, flags, stream, bytes(self.buffer[9 : 9 + length]))
            del self.buffer[: 9 + length]
            yield frame

    def headers(self, frame: _Frame) -> dict[bytes, bytes]:
        """What a frame says in headers; nothing until they are whole. Raises `HPACKError`."""
        if frame.kind == _HEADERS:
            self.block = frame.content
        elif frame.kind == _CONTINUATION:
            self.block += frame.payload
        else:
            return {}
        if not frame.flags & _END_HEADERS:
            return {}
        return dict(self.decoder.decode(self.block, raw=True))


@dataclass
class CallWatch:
    """Follows one connection: see `comparison.wire`. A request is a call of a method."""

    _client: _Side = field(default_factory=_Side)
    _server: _Side = field(default_factory=_Side)
    _started: bool = False
    _opaque: bool = False
    _open: dict[int, Request] = field(default_factory=dict)

    def asked(self, data: bytes) -> list[Request]:
        """Bytes from the client; returns the calls that they begin. Their bodies may follow."""
        if self._opaque:
            return []
        if not self._started:
            data = bytes(self._client.buffer) + data
            self._client.buffer.clear()
            if len(data) < len(PREFACE):
                self._client.buffer += data
                return []
            data, self._started = data[len(PREFACE) :], True
        begun = []
        try:
            for frame in self._client.frames(data):
                path = self._client.headers(frame).get(b":path")
                if path is not None:
                    self._open[frame.stream] = Request(path)
                    begun.append(self._open[frame.stream])
                elif frame.kind == _DATA and frame.stream in self._open:
                    self._open[frame.stream].body += frame.content
                elif frame.kind == _RESET:
                    self._open.pop(frame.stream, None)
        except HPACKError:
            self._opaque = True
        return begun

    def answered(self, data: bytes) -> list[Request]:
        """Bytes from the server; returns the calls that they answer first, or end with an error."""
        if self._opaque:
            return []
        over = []
        try:
            for frame in self._server.frames(data):
                outcome = self._outcome(frame)
                request = self._open.get(frame.stream)
                if request is not None and outcome is not None:
                    request.outcome = outcome
                    over.append(self._open.pop(frame.stream))
        except HPACKError:
            self._opaque = True
        return over

    def _outcome(self, frame: _Frame) -> Outcome | None:
        """What a frame of the server says about its call."""
        status = self._server.headers(frame).get(b"grpc-status")
        if frame.kind == _DATA:
            return "accepted"
        if frame.kind == _RESET:
            return "failed"
        if status is None or status == b"0":
            return None
        return "refused" if status == _NOT_FOUND else "failed"
