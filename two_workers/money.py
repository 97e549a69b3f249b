"""Money: whole millionths of a US dollar inside, dollars wherever somebody reads it."""

from __future__ import annotations

MicroUSD = int
"""Money in millionths of a US dollar: exact, and large enough for any run."""


def dollars(amount: MicroUSD) -> str:
    """`$0.0025`: exact, so that what is said about a budget adds up; at least four decimals."""
    digits = f"{amount / 1_000_000:.6f}"
    return f"${digits[:-2]}{digits[-2:].rstrip('0')}"
