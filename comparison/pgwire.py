"""Just enough of PostgreSQL's protocol to see which statements were committed, and what they did.

A client asks in messages (`type, length, body`), each round closed by Sync or a simple Query; the
server ends its answer to a round with ReadyForQuery, which says whether a transaction is open. So
a statement is committed when the answer to its round, or to a later one, says "idle" and neither an
error nor a rollback came in between. The server sends that message after the commit, never before.
CommandComplete says how many rows it was about: none is a refusal, by a fence in its WHERE.

A connection that does not speak this protocol (gRPC, or PostgreSQL under TLS) is left alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from comparison.wire import Outcome, Request

_ENCRYPTION = {80877103, 80877104}  # SSLRequest, GSSENCRequest: answered by one byte
_LONGEST = 1 << 28


@dataclass
class _Messages:
    """Cuts a byte stream into messages; the last one may be incomplete."""

    buffer: bytearray = field(default_factory=bytearray)

    def typed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        self.buffer += data
        while len(self.buffer) >= 5:
            (length,) = struct.unpack_from("!I", self.buffer, 1)
            if not 4 <= length < _LONGEST:
                raise ValueError("not PostgreSQL's protocol")
            if len(self.buffer) < 1 + length:
                return
            message = bytes(self.buffer[: 1 + length])
            del self.buffer[: 1 + length]
            yield message[:1], message[5:]


@dataclass(eq=False)
class _Asked:
    """A statement that was sent in round `due`; `rows` once the server has counted them."""

    request: Request
    due: int
    rows: int | None = None
    undone: bool = False

    @property
    def outcome(self) -> Outcome:
        if self.undone:
            return "failed"
        return "refused" if self.rows == 0 else "accepted"


@dataclass
class CommitWatch:
    """Follows one connection: see `comparison.wire`. A request is a statement that is executed."""

    _client: _Messages = field(default_factory=_Messages)
    _server: _Messages = field(default_factory=_Messages)
    _opaque: bool = False
    _started: bool = False
    _single_bytes: int = 0
    _rounds_asked: int = 1  # the startup is answered by a ReadyForQuery too
    _rounds_answered: int = 0
    _prepared: dict[bytes, bytes] = field(default_factory=dict)
    _open: list[_Asked] = field(default_factory=list)

    def asked(self, data: bytes) -> list[Request]:
        """Bytes from the client; returns the statements that they execute."""
        found: list[Request] = []
        try:
            if not self._started:
                data = self._startup(data)
            if self._opaque or not self._started:
                return []
            for kind, body in self._client.typed(data):
                request = self._executed(kind, body)
                if request is not None:
                    found.append(request)
                    self._open.append(_Asked(request, self._rounds_asked + 1))
                if kind in b"QS":
                    self._rounds_asked += 1
        except (ValueError, struct.error):
            self._opaque = True
        return found

    def answered(self, data: bytes) -> list[Request]:
        """Bytes from the server; returns the statements that are now committed, or failed."""
        if self._single_bytes and not self._opaque:
            # The answers to the encryption requests: S or G mean that the rest is unreadable.
            self._opaque = data[:1] not in (b"N", b"E")
            self._single_bytes -= 1
            data = data[1:]
        found: list[Request] = []
        try:
            for kind, body in () if self._opaque else self._server.typed(data):
                found += self._follow(kind, body)
        except ValueError:
            self._opaque = True
        return found

    def _startup(self, data: bytes) -> bytes:
        """Consume untyped messages up to the startup message; returns what follows it."""
        buffer = self._client.buffer
        buffer += data
        while len(buffer) >= 8:
            length, code = struct.unpack_from("!II", buffer)
            if code >> 16 != 3 and code not in _ENCRYPTION:
                raise ValueError("not PostgreSQL's protocol")
            if len(buffer) < length:
                break
            del buffer[:length]
            if code in _ENCRYPTION:
                self._single_bytes += 1
                continue
            self._started = True
            rest = bytes(buffer)
            buffer.clear()
            return rest
        return b""

    def _executed(self, kind: bytes, body: bytes) -> Request | None:
        """The statement that a message executes: a simple Query, or a Bind to a prepared one."""
        if kind == b"Q":
            return Request(body)
        if kind == b"P":
            name, text, *_ = body.split(b"\0", 2)
            self._prepared[name] = text
        if kind == b"B":
            _, name, parameters = body.split(b"\0", 2)
            return Request(self._prepared.get(name, b""), bytearray(parameters))
        return None

    def _follow(self, kind: bytes, body: bytes) -> list[Request]:
        """One message of the server; returns the statements that it concludes."""
        answering = self._rounds_answered + 1
        if kind in b"DC":
            mine = (a for a in self._open if a.due == answering and a.rows is None)
            current = next(mine, None)
            if kind == b"D" and current is not None:
                current.request.rows += body
            elif current is not None:
                current.rows = _rows(body)
        if kind == b"E" or (kind == b"C" and body.startswith(b"ROLLBACK")):
            for asked in self._open:
                asked.undone |= asked.due <= answering  # with the transaction that it was part of
        if kind != b"Z":
            return []
        self._rounds_answered = answering
        if body != b"I":
            return []
        over = [asked for asked in self._open if asked.due <= answering]
        self._open = [asked for asked in self._open if asked.due > answering]
        for asked in over:
            asked.request.outcome = asked.outcome
        return [asked.request for asked in over]


def _rows(tag: bytes) -> int:
    """How many rows a CommandComplete is about; 1 for a command that has none to count."""
    last = tag.rstrip(b"\0").rpartition(b" ")[2]
    return int(last) if last.isdigit() else 1
