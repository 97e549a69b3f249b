"""A request on its way to a server and the server's word on it: what both engines' wires tell.

`pgwire` and `grpcwire` follow one connection each. `asked` is given what the client sends and
returns the requests that are whole with it, or at least named; `answered` is given what the server
sends and returns the requests that it has now dealt with, their `outcome` set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

Outcome = Literal["accepted", "refused", "failed"]
"""*Refused*: the server did nothing, since there was nothing (any more) that the request is about.
*Failed*: any other error."""


@dataclass(eq=False)
class Request:
    """`name` is the statement or the method, `body` its parameters or its message.

    `outcome` is None until the server has answered; `rows` is what it returned, where the wire has
    rows.
    """

    name: bytes
    body: bytearray = field(default_factory=bytearray)
    outcome: Outcome | None = None
    rows: bytearray = field(default_factory=bytearray)


class Watch(Protocol):
    """Follows one connection. What it cannot read it leaves alone."""

    def asked(self, data: bytes) -> list[Request]:
        """Bytes from the client."""
        ...

    def answered(self, data: bytes) -> list[Request]:
        """Bytes from the server."""
        ...
