"""Just enough of PostgreSQL's protocol to see that a statement was committed.

A client asks in messages (`type, length, body`), each round closed by Sync or a simple Query; the
server ends its answer to a round with ReadyForQuery, which says whether a transaction is open. So
a statement is committed when the answer to its round, or to a later one, says "idle" and no error
came in between. The server sends that message after the commit, never before.

A connection that does not speak this protocol (gRPC, or PostgreSQL under TLS) is left alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

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


@dataclass
class CommitWatch:
    """Follows one connection. `asked` sees what the client sends, `answered` what it gets."""

    _asked: _Messages = field(default_factory=_Messages)
    _answered: _Messages = field(default_factory=_Messages)
    _opaque: bool = False
    _started: bool = False
    _single_bytes: int = 0
    _rounds_asked: int = 1  # the startup is answered by a ReadyForQuery too
    _rounds_answered: int = 0
    _prepared: dict[bytes, bytes] = field(default_factory=dict)
    _awaited: bytes | None = None
    _due: int = 0
    _failed: bool = False

    def asked(self, data: bytes, statement: bytes | None) -> bool:
        """Bytes from the client; True if they execute a statement that contains `statement`."""
        executed = False
        try:
            if not self._started:
                data = self._startup(data)
            if self._opaque or not self._started:
                return False
            for kind, body in self._asked.typed(data):
                text = self._text(kind, body)
                if statement is not None and statement in text:
                    executed = True
                    self._awaited, self._due = statement, self._rounds_asked + 1
                    self._failed = False
                if kind in b"QS":
                    self._rounds_asked += 1
        except (ValueError, struct.error):
            self._opaque = True
        return executed

    def answered(self, data: bytes) -> bytes | None:
        """Bytes from the server; returns what was looked for if they confirm its commit."""
        if self._single_bytes and not self._opaque:
            # The answers to the encryption requests: S or G mean that the rest is unreadable.
            self._opaque = data[:1] not in (b"N", b"E")
            self._single_bytes -= 1
            data = data[1:]
        confirmed = None
        try:
            for kind, body in () if self._opaque else self._answered.typed(data):
                confirmed = self._confirmed(kind, body) or confirmed
        except ValueError:
            self._opaque = True
        return confirmed

    def _startup(self, data: bytes) -> bytes:
        """Consume untyped messages up to the startup message; returns what follows it."""
        buffer = self._asked.buffer
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

    def _text(self, kind: bytes, body: bytes) -> bytes:
        """The statement that a message executes: a simple Query, or a Bind to a prepared one."""
        if kind == b"Q":
            return body
        if kind == b"P":
            name, text, *_ = body.split(b"\0", 2)
            self._prepared[name] = text
        if kind == b"B":
            return self._prepared.get(body.split(b"\0", 2)[1], b"")
        return b""

    def _confirmed(self, kind: bytes, body: bytes) -> bytes | None:
        if kind == b"E":
            self._failed = True
        if kind != b"Z":
            return None
        self._rounds_answered += 1
        if self._rounds_answered < self._due or body != b"I":
            return None
        confirmed, self._awaited = self._awaited, None
        return None if self._failed else confirmed
