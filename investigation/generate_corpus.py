"""Write the incident that comes with the package: `python -m investigation.generate_corpus FOLDER`.

A made-up web shop at night, one hour, five services, one root cause:

- 02:31:07  a scheduled change sets the connection pool of the order database from 40 to 4
            (deploy.log); nothing happens at first, the night is quiet;
- 02:36     the morning exports start: checkouts wait for a connection, then fail (checkout.log);
- 02:36+    the gateway answers 503, clients try again, the load doubles (gateway.log);
- 02:38+    payments are authorised for orders that are never stored (payments.log);
- 02:52:40  somebody sets the pool back; two minutes later all is well.

Red herrings, all going on since before the incident: a disk that is 81 % full, a certificate that
expires in twelve days, a failed backup, a scanner at the SSH port (host.log), and a harmless
deployment of another service at 02:20.

The same seed gives the same bytes on every machine and every Python: of the random generator only
`random()` is used, whose sequence is guaranteed.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

SEED = 20251118
START = datetime(2025, 11, 18, 2, 0, 0)  # noqa: DTZ001  (log times have no zone)
MINUTES = 60
CHANGE = 31 * 60 + 7
ONSET = 36 * 60
REPAIR = 52 * 60 + 40
RECOVERED = REPAIR + 110

Line = tuple[float, str]


class Incident:
    """Draws the incident's lines; seconds count from `START`."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, limit: int) -> int:
        """An even whole number from 0 up to, not including, `limit`."""
        return int(self._random.random() * limit)

    def pick(self, *options: str) -> str:
        return options[self.below(len(options))]

    def moments(self, first: float, last: float, every: float) -> Iterator[float]:
        """Moments between two seconds, `every` so many seconds on average."""
        at = first + self._random.random() * every
        while at < last:
            yield at
            at += every * (0.4 + 1.2 * self._random.random())

    def files(self) -> dict[str, list[str]]:
        """The lines of each log file, in the order of time."""
        gateway, checkout = self._requests()
        parts = {
            "checkout.log": checkout + self._pool(),
            "deploy.log": self._deploy(),
            "gateway.log": gateway,
            "host.log": self._host(),
            "payments.log": self._payments(),
        }
        return {name: [text for _, text in sorted(lines)] for name, lines in parts.items()}

    def _requests(self) -> tuple[list[Line], list[Line]]:
        """Requests as the gateway and the checkout service see them."""
        gateway: list[Line] = []
        checkout: list[Line] = []
        for at in self.moments(0, MINUTES * 60, 2.6):
            self._request(at, gateway, checkout)
            if ONSET <= at < RECOVERED:  # clients try again at once: the load doubles
                self._request(at + 1 + self._random.random(), gateway, checkout)
        return gateway, checkout

    def _request(self, at: float, gateway: list[Line], checkout: list[Line]) -> None:
        client = f"10.20.{self.below(8)}.{self.below(200) + 10}"
        order = 480_000 + int(at * 10)
        path, is_checkout = self._path(order)
        failing = is_checkout and ONSET + 20 <= at < RECOVERED and self.below(100) < 72
        if is_checkout:
            checkout += self._checkout(at, order, failing=failing)
        status = 503 if failing else 200
        took = 5_000 + self.below(400) if failing else 20 + self.below(160)
        end = at + took / 1_000
        size = 312 if failing else 900 + self.below(4_000)
        gateway.append(
            (end, f'{client} - - [{_web(end)}] "{path} HTTP/1.1" {status} {size} {took}ms')
        )

    def _path(self, order: int) -> tuple[str, bool]:
        draw = self.below(10)
        if draw < 4:
            return f"POST /checkout/{order}", True
        if draw < 8:
            return f"GET /products/{self.below(900) + 100}", False
        return "GET /cart", False

    def _checkout(self, at: float, order: int, *, failing: bool) -> list[Line]:
        thread = f"[http-{self.below(16) + 1}]"
        if not failing:
            done = at + 0.08
            stored = f"order {order} stored in {12 + self.below(30)} ms"
            return [(done, _line(done, "INFO", f"{thread} c.shop.Checkout - {stored}"))]
        waited = at + 5
        return [
            (
                waited,
                _line(
                    waited,
                    "ERROR",
                    f"{thread} c.shop.Checkout - checkout of order {order} failed: no connection "
                    "to orders-db within 5000 ms",
                ),
            )
        ]

    def _pool(self) -> list[Line]:
        """What the checkout service says of its connections to the order database."""
        lines: list[Line] = []
        for at in self.moments(0, MINUTES * 60, 60):
            size = 4 if CHANGE <= at < REPAIR else 40
            busy = 4 if ONSET <= at < REPAIR else 1 + self.below(3)
            lines.append(
                (at, _line(at, "INFO", f"[pool] c.shop.Db - orders-db: {busy} of {size} in use"))
            )
        for at in self.moments(ONSET, REPAIR, 9):
            waiting = 3 + self.below(20)
            lines.append(
                (
                    at,
                    _line(
                        at,
                        "WARN",
                        f"[pool] c.shop.Db - pool orders-db exhausted: 4 of 4 connections in use, "
                        f"{waiting} threads waiting",
                    ),
                )
            )
        lines.append(
            (RECOVERED, _line(RECOVERED, "INFO", "[pool] c.shop.Db - orders-db back to normal"))
        )
        return lines

    def _deploy(self) -> list[Line]:
        said = (
            (5, "INFO", "scheduler started, 3 changes planned for tonight"),
            (20 * 60 + 4, "INFO", "deploying search 4.18.2 (change 8839)"),
            (20 * 60 + 51, "INFO", "search 4.18.2 is healthy on 3 of 3 hosts"),
            (
                CHANGE,
                "INFO",
                "config changed for checkout: orders-db.pool.max 40 -> 4 (change 8841, "
                "nightly-tuning)",
            ),
            (CHANGE + 2, "INFO", "checkout reloaded its settings on 2 of 2 hosts"),
            (
                REPAIR,
                "INFO",
                "config changed for checkout: orders-db.pool.max 4 -> 40 (change 8842, on call)",
            ),
            (REPAIR + 2, "INFO", "checkout reloaded its settings on 2 of 2 hosts"),
        )
        return [(at, _line(at, level, f"[deployer] {text}")) for at, level, text in said]

    def _host(self) -> list[Line]:
        """Red herrings: each alarming, each since before the incident, none to blame."""
        lines: list[Line] = []
        for at in self.moments(0, MINUTES * 60, 300):
            lines.append((at, _line(at, "WARN", "[monitor] disk /var is 81% used on shop-2")))
        for at in self.moments(0, MINUTES * 60, 600):
            text = "[monitor] certificate of static.shop.example expires in 12 days"
            lines.append((at, _line(at, "WARN", text)))
        for at in self.moments(0, MINUTES * 60, 75):
            name = self.pick("root", "admin", "test", "oracle", "ubuntu")
            address = f"203.0.113.{self.below(5) + 40}"
            text = f"[sshd] Failed password for invalid user {name} from {address}"
            lines.append((at, _line(at, "INFO", text)))
        backup = 15 * 60 + 2
        lines.append(
            (backup, _line(backup, "ERROR", "[cron] backup of wiki failed: mount point is busy"))
        )
        return lines

    def _payments(self) -> list[Line]:
        lines: list[Line] = []
        for at in self.moments(0, MINUTES * 60, 7):
            payment = 70_000 + int(at)
            text = f"[worker-{self.below(4)}] p.Auth - payment {payment} authorised"
            lines.append((at, _line(at, "INFO", text)))
            if ONSET + 120 <= at < RECOVERED and self.below(100) < 60:
                late = at + 8
                text = (
                    f"[worker-{self.below(4)}] p.Match - payment {payment} has no stored order, "
                    "will be reversed"
                )
                lines.append((late, _line(late, "WARN", text)))
        return lines


def _line(at: float, level: str, text: str) -> str:
    moment = START + timedelta(milliseconds=int(at * 1_000))
    return f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1_000:03d} {level:<5} {text}"


def _web(at: float) -> str:
    # Not %b: the name of a month must not depend on the locale.
    moment = START + timedelta(seconds=int(at))
    return f"{moment:%d}/Nov/{moment:%Y:%H:%M:%S} +0000"


def write_corpus(folder: Path, seed: int = SEED) -> None:
    """Write the log files into a folder, replacing those of the same name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in Incident(seed).files().items():
        (folder / name).write_bytes(("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the incident corpus.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    write_corpus(arguments.folder, arguments.seed)
