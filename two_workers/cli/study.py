"""`two-workers mapping | break | quiz | explain`: the concepts, and evidence for each."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.console import Console
from rich.syntax import Syntax

from two_workers.cli.process import run_async
from two_workers.engines import engine_plugin, server_for
from two_workers.errors import BadInput


@click.command()
@click.argument("concept", required=False)
@click.option("--run", "afresh", is_flag=True, help="Make the concept's evidence anew, now.")
@click.option("--html", type=click.Path(path_type=Path), help="Write everything as one page.")
@click.option("--record", is_flag=True, help="Make and keep all evidence anew (some minutes).")
@click.option("--only", multiple=True, help="With --record: this scenario, or broken-GUARD.")
def mapping(
    concept: str | None, afresh: bool, html: Path | None, record: bool, only: tuple[str, ...]
) -> int:
    """What claim, lease, heartbeat, fence and the rest are, on either engine.

    Without CONCEPT: a table of all of them. With one: its question, its broken version, both
    answers, and the timeline of a run that shows it.
    """
    if record:
        return _record(only)
    if html is not None:
        from comparison.mapping.page import write_page

        click.echo(f"written: {write_page(html)}", err=True)
        return 0
    console = Console(highlight=False)
    if concept is None:
        from comparison.mapping.table import mapping_table

        console.print(mapping_table(console.width))
        return 0
    _show(concept, console, afresh=afresh)
    return 0


def _show(name: str, console: Console, *, afresh: bool) -> None:
    from comparison.mapping.concept import find_concept
    from comparison.mapping.recording import stored
    from comparison.mapping.scenarios import find_scenario
    from comparison.mapping.scenarios.run import run_alone
    from comparison.mapping.screen import concept_screen

    concept = find_concept(name)
    scenario = find_scenario(concept.evidence.scenario)
    if afresh:
        click.echo(f"running `{scenario.name}` on both engines ...", err=True)
        recording = run_async(run_alone(scenario))
    else:
        found = stored(scenario.name)
        if found is None:
            raise BadInput(f"no stored evidence for {name!r}: use --run, or `make evidence`")
        recording = found
    guard = concept.broken.guard
    broken = stored(f"broken-{guard}") if guard else None
    console.print(concept_screen(concept, recording, broken, width=console.width))


def _record(only: tuple[str, ...]) -> int:
    from comparison.mapping.record import record

    problems = run_async(record(only, lambda path: click.echo(path)))
    for problem in problems:
        click.echo(f"not kept: {problem}", err=True)
    return 1 if problems else 0


@click.command("break")
@click.argument("guard", required=False)
def break_one(guard: str | None) -> int:
    """Remove one guard from a scratch copy of the store, and see which check convicts it.

    Without GUARD: those that can be removed. Exit code 0 if it was convicted.
    """
    from comparison.break_one import GUARDS, convict, difference, find_guard
    from comparison.mapping.record import convicts
    from comparison.mapping.screen import check_line

    console = Console(highlight=False)
    if guard is None:
        for one in GUARDS.values():
            console.print(f"[bold]{one.name:<10}[/] {one.invariant:<12} {one.says}")
        return 0
    removed = find_guard(guard)
    console.print(f"[bold]{removed.says}[/]\n")
    console.print(Syntax(difference(removed), "diff", background_color="default"))
    click.echo(f"running `{removed.scenario}` over the copy ...", err=True)
    recording = run_async(convict(removed))
    for side in recording.sides:
        for check in side.checks:
            console.print(check_line(check))
    convicted = convicts(recording, removed)
    console.print(f"\n{'convicted by' if convicted else 'NOT convicted by'} {removed.invariant}")
    return 0 if convicted else 1


@click.command()
@click.argument("topic", default="claim")
@click.option(
    "--backlog",
    type=click.IntRange(1, 1_000_000),
    default=20_000,
    show_default=True,
    help="Pending runs to plan with.",
)
def explain(topic: str, backlog: int) -> None:
    """The story's statement and ours, line by line, with the plans that PostgreSQL chose.

    TOPIC is claim (if none is named), heartbeat, fence, end or cancel. Without DATABASE_URL it
    starts a PostgreSQL of its own. Real runs are not touched.
    """
    from hand_rolled.explain import TOPICS, render
    from hand_rolled.explain import explain as explained

    if topic not in TOPICS:
        raise BadInput(f"nothing to explain about {topic!r}; there is: {', '.join(TOPICS)}")
    plugin = engine_plugin("hand_rolled")

    async def text() -> str:
        async with server_for(plugin, os.environ) as env:
            return render(await explained(plugin.settings(env), topic, backlog=backlog))

    click.echo(run_async(text()))


@click.command()
@click.argument("runs", nargs=-1)
@click.option(
    "--answers",
    type=click.Path(path_type=Path, dir_okay=False),
    help='A TOML file of predictions (`race = "1"`) instead of asking for them.',
)
@click.option("--list", "listed", is_flag=True, help="Only show the questions and their names.")
def quiz(runs: tuple[str, ...], answers: Path | None, listed: bool) -> int:
    """Predict what a run will show, then run it. RUNS: only the questions about these.

    Exit code 0 if every prediction was right. All questions take a few minutes to run.
    """
    from comparison.quiz.ask import by_run, check, predictions_from
    from comparison.quiz.show import ask_person, show_questions, show_verdicts

    console = Console(highlight=False)
    groups = by_run(runs)
    if listed:
        show_questions(console, groups)
        return 0
    predict = predictions_from(answers, groups) if answers else ask_person(console)
    verdicts = run_async(check(groups, predict, lambda it: console.print(f"running: {it} ...")))
    show_verdicts(console, verdicts)
    return 0 if all(verdict.right for verdict in verdicts) else 1


COMMANDS = [mapping, break_one, quiz, explain]
