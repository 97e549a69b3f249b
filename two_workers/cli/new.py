"""`two-workers new NAME`: a working agent of one's own, with a test that runs on both engines."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from string import Template

import click

from two_workers.errors import BadInput

TEMPLATES = files("two_workers.cli") / "templates" / "agent"


@click.command()
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Where the new folder goes. Default: here.",
)
def new(name: str, directory: Path) -> None:
    """Write a working agent package called NAME, with a test that passes on both engines."""
    target = directory / name
    _check(name, target)
    dashed = name.replace("_", "-")
    words = {"package": name, "kind": dashed, "distribution": dashed}
    for path, text in _rendered(TEMPLATES, words):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text)
        click.echo(f"wrote {target / path}")
    click.echo(f"\nnext: cd {target} && python -m pytest")


def _check(name: str, target: Path) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,49}", name) or keyword.iskeyword(name):
        raise BadInput(
            f"{name!r} cannot name a Python package: expected small letters, digits and "
            "underscores, starting with a letter, such as my_agent"
        )
    if target.exists():
        raise BadInput(f"{target} already exists: choose another name, or --directory")
    if name in sys.stdlib_module_names or find_spec(name) is not None:
        raise BadInput(f"{name!r} is already the name of an installed module: choose another")


def _rendered(folder: Traversable, words: dict[str, str]) -> list[tuple[Path, str]]:
    """Every file of the template with its path, filled in; `package` becomes the package's name."""
    found: list[tuple[Path, str]] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            inside = words["package"] if entry.name == "package" else entry.name
            found += [(Path(inside, path), text) for path, text in _rendered(entry, words)]
        elif entry.name.endswith(".tmpl"):
            text = Template(entry.read_text(encoding="utf-8")).substitute(words)
            found.append((Path(entry.name.removesuffix(".tmpl")), text))
    return found


COMMANDS = [new]
