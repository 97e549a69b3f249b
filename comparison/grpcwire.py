"""Just enough of gRPC's wire to see which method a worker calls, and that it was answered.

HTTP/2 sends frames (`length, type, flags, stream, payload`). A call is a stream that the client
opens with HEADERS; the method is the pseudo-header `:path`, compressed by HPACK, whose state runs
through the whole connection, so every header block must be read. A success is answered with
DATA; an error has no message and comes in HEADERS alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hpack import Decoder, HPACKError

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _CONTINUATION = 0x0, 0x1, 0x9
_END_HEADERS, _PADDED, _PRIORITY = 0x4, 0x8, 0x20
_TABLE = 65_536  # bytes that a client may make the table of known headers


@dataclass(frozen=True, slots=True)
class _Frame:
    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def header_block(self) -> bytes:
        """The payload of HEADERS without its padding and priority."""
        padding = self.payload[0] if self.flags & _PADDED else 0
        start = bool(self.flags & _PADDED) + 5 * bool(self.flags & _PRIORITY)
        return self.payload[start : len(self.payload) - padding]


def _frames(buffer: bytearray) -> Iterator[_Frame]:
    """Cut whole frames off the front of a byte stream."""
    while len(buffer) >= 9 and len(buffer) >= 9 + (length := int.from_bytes(buffer[:3])):
        stream = int.from_bytes(buffer[5:9]) & 0x7FFF_FFFF
        frame = _Frame(buffer[3], buffer[4], stream, bytes(buffer[9 : 9 + length]))
        del buffer[: 9 + length]
        yield frame


def _decoder() -> Decoder:
    decoder = Decoder()
    decoder.max_allowed_table_size = _TABLE
    return decoder


@dataclass
class CallWatch:
    """Follows one connection. `asked` sees what the client sends, `answered` what it gets."""

    _asked: bytearray = field(default_factory=bytearray)
    _answered: bytearray = field(default_factory=bytearray)
    _decoder: Decoder = field(default_factory=_decoder)
    _block: bytes = b""
    _started: bool = False
    _opaque: bool = False
    _awaited: tuple[int, bytes] | None = None

    def asked(self, data: bytes, method: bytes | None) -> bool:
        """Bytes from the client; True if they call a method whose path contains `method`."""
        if self._opaque:
            return False
        self._asked += data
        if not self._started:
            if len(self._asked) < len(PREFACE):
                return False
            del self._asked[: len(PREFACE)]
            self._started = True
        called = False
        for frame in _frames(self._asked):
            path = self._path(frame)
            if path is not None and method is not None and method in path:
                self._awaited, called = (frame.stream, method), True
        return called

    def answered(self, data: bytes) -> bytes | None:
        """Bytes from the server; returns what was looked for if they say that it succeeded."""
        self._answered += data
        confirmed = None
        for frame in _frames(self._answered):
            if self._awaited is not None and frame.stream == self._awaited[0]:
                if frame.kind == _DATA:
                    confirmed = self._awaited[1]
                self._awaited = self._awaited if frame.kind == _HEADERS else None
        return confirmed

    def _path(self, frame: _Frame) -> bytes | None:
        """The method that a frame begins to call, if it does and its headers are whole."""
        if frame.kind == _HEADERS:
            self._block = frame.header_block
        elif frame.kind == _CONTINUATION:
            self._block += frame.payload
        else:
            return None
        if not frame.flags & _END_HEADERS:
            return None
        try:
            headers = dict(self._decoder.decode(self._block, raw=True))
        except HPACKError:
            self._opaque = True
            return None
        return headers.get(b":path")
