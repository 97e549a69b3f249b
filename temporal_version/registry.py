"""What this process can run: the bridge from a worker's apps to the workflow sandbox.

The sandbox re-imports workflow code for each run. This module is passed through instead, so it is
the same inside and outside: a worker registers its apps here, and the workflow looks up by kind
which agent to import and how its effects behave. The driver is passed through as well: it holds
nothing between runs, saved histories watch over it, and its import would cost each run 8 ms of CPU.

The *agent's* module is never passed through. A module that was imported outside already hides a
clock or a random number from the sandbox; imported again inside, its first `datetime.now()` fails.
Step modules must be passed through, or each step type would exist twice and `isinstance` lie.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from temporal_version.settings import Settings
from two_workers.apps import App, Effect
from two_workers.errors import BadInput
from two_workers.steps import Step, result_adapter

PRELOAD = "temporal_version.preload"
"""The one module of the driver that the sandbox imports anew."""


@dataclass(frozen=True)
class Registered:
    """An app as the workflow sees it: the agent by name, the effects by the kind of their step."""

    app: App
    settings: Settings
    effects: dict[str, Effect]

    def load(self) -> App:
        """The app with its agent imported here and now: inside the sandbox, when called there."""
        found: Any = importlib.import_module(self.app.agent.__module__)
        for name in self.app.agent.__qualname__.split("."):
            found = getattr(found, name)
        return replace(self.app, agent=found)

    def effect(self, step: Step[Any]) -> Effect:
        """The effect for a step. By kind: the sandbox's copy of a step class is another class."""
        try:
            return self.effects[step.kind]
        except KeyError:
            raise BadInput(
                f"app {self.app.kind!r} asks for step {step.kind!r}, but registers no effect for "
                f"it; known: {sorted(self.effects)}"
            ) from None


_apps: dict[str, Registered] = {}
_checking: list[str] = []


def register(app: App, settings: Settings) -> Registered:
    """Make an app known to the workflows of this process. Raises `BadInput` if it cannot be."""
    _check_importable(app.kind, app.agent)
    effects = {step_type.kind: effect for step_type, effect in app.effects.items()}
    if len(effects) < len(app.effects):
        raise BadInput(f"app {app.kind!r} has two step types of the same kind: {sorted(effects)}")
    _apps[app.kind] = Registered(app, settings, effects)
    return _apps[app.kind]


@contextmanager
def checked(app: App) -> Iterator[None]:
    """While the body makes a worker, the sandbox imports the app's agent. Raises `BadInput`."""
    _checking.append(app.kind)
    try:
        yield
    except RuntimeError as error:
        cause = error.__cause__ or error
        raise BadInput(
            f"app {app.kind!r}: the workflow sandbox refuses the agent's module "
            f"{app.agent.__module__}: {type(cause).__name__}: {cause}"
        ) from error
    finally:
        _checking.remove(app.kind)


def load_checked() -> None:
    """Import the agents that are being checked. Called where the sandbox imports `preload.py`."""
    for kind in _checking:
        _apps[kind].load()


def registered(kind: str) -> Registered:
    """The app of this kind. A worker polls only its own kinds' queues, so it is there."""
    return _apps[kind]


def passthrough_modules(apps: Iterable[App]) -> set[str]:
    """The modules that the sandbox shares with the process, beside Temporal's own list.

    Libraries are shared whole, and the driver. Of a package that holds an agent, only the modules
    of its steps, their results and its effects are: the rest is imported again, and watched.
    """
    apps = tuple(apps)
    agents = {app.agent.__module__ for app in apps}
    watched = {name.partition(".")[0] for name in agents} | {"temporal_version"}
    loaded = {name.partition(".")[0] for name in sys.modules}
    libraries = loaded - watched - sys.stdlib_module_names - {"__main__", "__mp_main__"}
    driver = {name for name in sys.modules if name.startswith("temporal_version.")} - {PRELOAD}
    return (libraries | driver | {m for app in apps for m in _modules_of(app)}) - agents


def _modules_of(app: App) -> set[str]:
    modules = {app.resources.__module__}
    for step_type, effect in app.effects.items():
        modules |= {step_type.__module__, effect.run.__module__}
        modules |= _modules_in(result_adapter(step_type).core_schema)
    return modules & sys.modules.keys() - sys.stdlib_module_names


def _modules_in(schema: Any) -> set[str]:
    """The modules of all classes that a pydantic schema mentions."""
    found: set[str] = set()
    pending = [schema]
    while pending:
        match pending.pop():
            case {"cls": type() as cls, **rest}:
                found.add(cls.__module__)
                pending.extend(rest.values())
            case dict() as inner:
                pending.extend(inner.values())
            case list() | tuple() as inner:
                pending.extend(inner)
    return found


def _check_importable(kind: str, agent: Callable[[Any], Any]) -> None:
    module, name = agent.__module__, agent.__qualname__
    if "<" in name or module == "__main__":
        raise BadInput(
            f"app {kind!r}: the agent {module}.{name} cannot be imported by name; expected a "
            "module-level `async def` in a module of its own, which the sandbox imports again"
        )
