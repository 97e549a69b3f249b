"""A worker reduced to its calls: `python -m tests.comparison.caller URL KEY FENCE`.

Says `caller PID ready`, makes one model call, and says what came back.
"""

from __future__ import annotations

import os
import sys

import httpx


def main() -> None:
    url, key, fence = sys.argv[1:4]
    run = key.rpartition("/")[0]
    headers = {"X-Run": run, "X-Key": key, "X-Fence": fence, "X-Attempt": "1"}
    headers |= {"X-Worker": str(os.getpid()), "X-Engine": "caller"}
    print(f"caller {os.getpid()} ready", flush=True)  # noqa: T201 - the ready line
    reply = httpx.post(
        f"{url}/v1/chat/completions", json={"messages": []}, headers=headers, timeout=60
    )
    print(f"answer {reply.status_code}", flush=True)  # noqa: T201 - read from the log


if __name__ == "__main__":
    main()
