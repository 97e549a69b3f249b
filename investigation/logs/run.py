"""Run one tool: in this process (`run`), or as a process of its own (`python -m` this module).

A process of its own, because a regular expression that a model wrote can take hours on one line,
holds the interpreter's lock all the while, and so would silence every heartbeat of its worker: the
lease would be lost over a typo. A process can be given limits that the kernel enforces, even when
its parent has died: processor time, so that a busy machine does not change what a tool finds, and
an alarm by the clock, for a file system that hangs.

Speaks JSON lines: a request on standard input; `{"progress": bytes}` lines and one
`{"ok": ..., "text": ...}` line on standard output.
"""

from __future__ import annotations

import inspect
import json
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

from investigation.logs import OUTPUT, QUOTES
from investigation.logs.files import Scan, ToolError, open_corpus
from investigation.logs.operations import OPERATIONS, Answer


def run(
    root: Path,
    name: str,
    arguments: Mapping[str, Any],
    progress: Callable[[int], None] = lambda _: None,
) -> str:
    """Carry out one tool and return its JSON. Raises `ToolError`; knows no deadline."""
    operation = OPERATIONS.get(name)
    if operation is None:
        raise ToolError(f"there is no tool {name!r}; the tools are {', '.join(OPERATIONS)}")
    _check(operation, name, arguments)
    scan = Scan(progress)
    answer = operation(open_corpus(root), scan, **arguments)
    if scan.left_out:
        answer["incomplete"] = [{"file": file, "why": why} for file, why in scan.left_out]
    return _within(answer, QUOTES if name == "quote" else OUTPUT)


def _check(operation: Callable[..., Answer], name: str, arguments: Mapping[str, Any]) -> None:
    """Raise `ToolError` unless the arguments have the right names and types."""
    parameters = dict(list(inspect.signature(operation).parameters.items())[2:])
    hints = get_type_hints(operation)
    for key, value in arguments.items():
        if key not in parameters:
            raise ToolError(f"{name} has no argument {key!r}; it takes {', '.join(parameters)}")
        kind = getattr(hints[key], "__origin__", hints[key])
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ToolError(f"{name}: {key} must be {kind.__name__}, not {value!r:.80}")
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in arguments:
            raise ToolError(f"{name} needs the argument {key!r}")


def _within(answer: Answer, limit: int) -> str:
    """The answer as JSON of at most `limit` characters: its largest inner lists are cut."""
    while len(text := json.dumps(answer, ensure_ascii=False, separators=(",", ":"))) > limit:
        sizes = [(len(json.dumps(table)), table) for table in _tables(answer)]
        if not sizes:
            raise ToolError("the answer is too long; ask for less")
        largest = max(size for size, _ in sizes)
        for size, table in sizes:
            if 2 * size >= largest:
                del table[len(table) * 3 // 4 :]
        answer["shortened"] = "some lists are cut; ask for one file or a narrower pattern"
    return text


def _tables(value: Any) -> list[list[Any]]:
    """Lists of two or more rows, none of which holds such a list itself."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    inner = [table for item in items for table in _tables(item)]
    is_table = isinstance(value, list) and len(value) > 1 and isinstance(value[0], dict | list)
    return inner or ([value] if is_table else [])


def main() -> None:
    """Carry out the request on standard input."""
    request = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_seconds"], request["cpu_seconds"] + 1))
    signal.alarm(request["seconds"])

    def say(message: Mapping[str, Any]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    try:
        text = run(
            Path(request["root"]),
            request["tool"],
            request["arguments"],
            lambda read: say({"progress": read}),
        )
    except ToolError as error:
        say({"ok": False, "text": str(error)})
    else:
        say({"ok": True, "text": text})


if __name__ == "__main__":
    main()
