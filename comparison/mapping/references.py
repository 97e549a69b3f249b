"""`module:NAME` → where that is, looked up in the source when it is shown.

A record never holds a line number: code moves. It names a constant, a class, a function or a
method (`module:Class.method`); the syntax tree says where it stands and what its text is. The
module is found but not imported, so looking at the mapping needs no database driver.
"""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from two_workers import BadInput


@dataclass(frozen=True)
class Place:
    """Where a name is defined. `path` is relative to the folder that holds the package."""

    path: str
    line: int
    source: str
    text: str | None
    """The value, when the name is a string constant: the SQL of a statement."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def resolve(reference: str) -> Place:
    """Where `reference` points. Raises `BadInput` if it points nowhere."""
    module, _, name = reference.partition(":")
    file = _file_of(module, reference)
    source = file.read_text()
    node = _find(ast.parse(source), name.split("."))
    if node is None:
        raise BadInput(f"reference {reference!r} points nowhere: {file.name} defines no {name!r}")
    return Place(
        path=str(Path(*module.split(".")).parent / file.name),
        line=node.lineno,
        source=ast.get_source_segment(source, node) or "",
        text=_text(node),
    )


def _file_of(module: str, reference: str) -> Path:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise BadInput(f"reference {reference!r} points nowhere: there is no module {module!r}")
    return Path(spec.origin)


def _find(tree: ast.AST, names: list[str]) -> ast.stmt | None:
    """The statement that defines `names[0]` in `tree`, or `names[1]` inside of that, and so on."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt) and names[0] in _defined_by(node):
            return node if len(names) == 1 else _find(node, names[1:])
    return None


def _defined_by(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case _:
            return set()


def _text(node: ast.stmt) -> str | None:
    match node:
        case ast.Assign(value=ast.Constant(value=str(text))):
            return text
        case ast.AnnAssign(value=ast.Constant(value=str(text))):
            return text
        case _:
            return None
