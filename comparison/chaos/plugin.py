"""The options of the chaos suite, and what they may be.

Installed as a pytest plugin, because a suite named with `--pyargs` cannot bring its own options. So
this is imported in every pytest run: it imports little, and looks only at options that were given.
The fixtures are in `conftest.py`, which only this suite sees.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import pytest
from pydantic import JsonValue

SUITE = "comparison.chaos"
TOUR = "comparison.chaos.app:APP"
PLACES = '["a", "b", "c", "d"]'


@dataclass(frozen=True)
class Options:
    """What was asked for, checked. No engine named means all installed ones."""

    engines: tuple[str, ...]
    app: str
    payload: JsonValue
    kills: int
    seed: int


OPTIONS = pytest.StashKey[Options]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of `pytest --pyargs comparison.chaos`."""
    group = parser.getgroup("two-workers", "kill tests for engines and agents")
    group.addoption(
        "--two-workers-engine",
        action="append",
        default=[],
        metavar="NAME",
        help="An engine to break, by its entry point. Repeat for several. Default: all installed.",
    )
    group.addoption(
        "--two-workers-app",
        default=TOUR,
        metavar="MODULE:NAME",
        help="The app whose agent is broken in test_any_agent. Its effects run for real.",
    )
    group.addoption(
        "--two-workers-payload",
        default=PLACES,
        metavar="JSON",
        help="What to start the agent with.",
    )
    group.addoption(
        "--two-workers-kills", default="3", metavar="N", help="Workers to kill per run, from 1."
    )
    group.addoption(
        "--two-workers-seed", default="1", metavar="N", help="Chooses the moments; from 0."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check the options. Raises `pytest.UsageError`, which pytest prints as one line."""
    called = any(argument.startswith(SUITE) for argument in config.args)
    if called and not config.pluginmanager.hasplugin("asyncio"):
        raise pytest.UsageError(
            f"{SUITE} needs the plugin pytest-asyncio: pip install 'two-workers[chaos]', "
            "and neither `-p no:asyncio` nor PYTEST_DISABLE_PLUGIN_AUTOLOAD"
        )
    app, payload = config.getoption("--two-workers-app"), config.getoption("--two-workers-payload")
    config.stash[OPTIONS] = options = Options(
        engines=tuple(dict.fromkeys(config.getoption("--two-workers-engine"))),
        app=app,
        payload=_json(payload),
        kills=_whole(config, "--two-workers-kills", least=1),
        # Python's generator takes the absolute value: -1 would be the same seed as 1.
        seed=_whole(config, "--two-workers-seed", least=0),
    )
    for name in options.engines:
        _check_engine(name)
    if (app, payload) != (TOUR, PLACES):
        # An app of one's own lies where pytest was called; its workers look there too.
        sys.path.insert(0, str(config.invocation_params.dir))
        _check_app(app, options.payload)


def _whole(config: pytest.Config, option: str, *, least: int) -> int:
    given = config.getoption(option)
    try:
        number = int(given)
    except ValueError:
        number = least - 1
    if number < least:
        raise pytest.UsageError(f"{option}: expected a whole number from {least}, found {given!r}")
    return number


def _json(text: str) -> JsonValue:
    try:
        payload: JsonValue = json.loads(text)
    except json.JSONDecodeError as error:
        raise pytest.UsageError(
            f"--two-workers-payload: expected JSON, found {text!r}: {error}"
        ) from None
    return payload


def _check_engine(name: str) -> None:
    from two_workers import BadInput, engine_plugin

    try:
        engine_plugin(name)
    except BadInput as error:
        raise pytest.UsageError(f"--two-workers-engine: {error}") from None


def _check_app(path: str, payload: JsonValue) -> None:
    """The app can be imported, and its agent takes the payload."""
    from pydantic import ValidationError

    from two_workers import BadInput, load_app

    try:
        app = load_app(path)
    except BadInput as error:
        raise pytest.UsageError(f"--two-workers-app: {_one_line(error)}") from None
    except Exception as error:  # the module is not ours: importing it can raise anything
        raise pytest.UsageError(
            f"--two-workers-app: importing {path} raised {type(error).__name__}: {_one_line(error)}"
        ) from error
    try:
        app.plan(payload).close()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"[{part!r}]" for part in first["loc"])
        raise pytest.UsageError(
            f"--two-workers-payload: the agent of {path} does not take {json.dumps(payload)}: "
            f"{place or 'payload'}: {first['msg']}"
        ) from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
