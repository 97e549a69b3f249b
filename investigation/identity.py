"""Tell the outside who calls, and listen when it refuses a zombie.

A worker that was paused past its lease wakes up and carries on. The engine refuses its writes, but
a model call or a tool call goes past the engine. Only whoever receives it can refuse it: it
remembers the highest fence seen for a key and answers an older one with 409 and `stale_fence`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from two_workers import Call, PermanentFailure


class StaleFence(PermanentFailure):
    """The outside has seen a newer owner of this step: this worker must stop."""


def identity_headers(call: Call) -> dict[str, str]:
    """Headers that say which run, step, owner and attempt a call belongs to."""
    return {
        "X-Run": call.run_id,
        "X-Key": call.key,
        "X-Fence": ".".join(map(str, call.fence)),
        "X-Attempt": str(call.attempt),
        "X-Worker": call.worker,
        "X-Engine": call.engine,
    }


def refuse_if_stale(status: int, body: Any, call: Call) -> None:
    """Raise `StaleFence` if a reply says that a newer owner has called already."""
    error = body.get("error", body) if isinstance(body, Mapping) else None
    if status == 409 and isinstance(error, Mapping) and error.get("type") == "stale_fence":
        fence = ".".join(map(str, call.fence))
        raise StaleFence(f"{call.key}: fence {fence} is older than one already seen; stopping")
