"""`two-workers investigate`: the agent app on either engine, from question to report."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import click
from pydantic import JsonValue
from rich.console import Console

from two_workers.apps import App, load_app
from two_workers.cli.options import engine_option
from two_workers.cli.process import run_async
from two_workers.engines import engine_plugin, new_worker_id, server_for
from two_workers.errors import BadInput, RunFailed
from two_workers.protocol import Engine, Run, Worker


@click.command()
@click.argument("question")
@engine_option
@click.option(
    "--corpus",
    type=click.Path(path_type=Path),
    help="A folder of log files. Default: the small incident that comes with the project.",
)
@click.option(
    "--max-model-calls",
    type=click.IntRange(1, 200),
    default=12,
    show_default=True,
    help="At most this many.",
)
@click.option(
    "--budget",
    type=click.FloatRange(0, 1e6),
    help="The most it may cost, in US dollars. A model call needs its worst case to fit.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 16),
    default=2,
    show_default=True,
    help="Workers in this process. On a configured server they take any run of this app.",
)
@click.option("--markdown", is_flag=True, help="Print the report as Markdown.")
@click.option(
    "--timeout",
    type=click.FloatRange(1, 86_400),
    default=600.0,
    show_default=True,
    help="Cancel and give up after, in seconds.",
)
def investigate(
    question: str,
    engine: str,
    corpus: Path | None,
    max_model_calls: int,
    budget: float | None,
    workers: int,
    markdown: bool,
    timeout: float,
) -> None:
    """Investigate a folder of logs and print a report that cites file and line.

    The workers run in this process. Without a configured server or model it starts the engine's own
    server for as long as it runs, and a scripted model.
    """
    from investigation.render import render_markdown, render_terminal
    from investigation.steps import Question, Report
    from investigation.tools import check_corpus

    logging.basicConfig(level=logging.ERROR)  # the run itself tells what went wrong with a step
    if not question.strip() or not _is_text(question):
        raise BadInput(f"question {question!r}: expected a sentence about the logs, in UTF-8")
    if not math.isfinite(budget or 0) or not math.isfinite(timeout):
        raise BadInput("--budget and --timeout: expected a number")
    folder = str(corpus.absolute()) if corpus else ""
    check_corpus(folder)
    asked = Question(text=question, corpus=folder, max_model_calls=max_model_calls)
    run = Run(
        run_id=f"investigate-{uuid.uuid4().hex[:10]}",
        kind="investigation",
        payload=asked.model_dump(mode="json"),
        budget=None if budget is None else round(budget * 1e6),
    )
    result = run_async(_investigate(engine, run, workers, timeout))
    report = Report.model_validate(result)
    if markdown:
        click.echo(render_markdown(report))
    else:
        Console().print(render_terminal(report))


async def _investigate(engine_name: str, run: Run, workers: int, timeout: float) -> JsonValue:
    progress = Console(stderr=True, highlight=False, markup=False)
    plugin, app = engine_plugin(engine_name), load_app("investigation.app:APP")
    if not plugin.is_configured(os.environ):
        progress.print(f"starting the server of {engine_name} ...", style="dim")
    async with server_for(plugin, os.environ) as env, AsyncExitStack() as stack:
        settings = plugin.settings(env)
        engine = await stack.enter_async_context(plugin.connect(settings))
        for _ in range(workers):
            worker = plugin.worker(settings, [app], worker_id=new_worker_id())
            await stack.enter_async_context(working(worker))
        await engine.start(run)
        progress.print(f"{run.run_id} on {engine_name}: {_asked(app, run)}", style="dim")
        watching = asyncio.create_task(_show_steps(engine, run.run_id, progress))
        stack.callback(watching.cancel)
        try:
            result = await engine.result(run.run_id, timeout=timeout)
        except TimeoutError:
            await engine.cancel(run.run_id, reason="gave up waiting")
            raise RunFailed(run.run_id, f"no report within {timeout:g} s") from None
        view = await engine.get(run.run_id)
        await asyncio.wait([watching])
        progress.print(f"{view.state}, cost ${view.cost / 1e6:.4f}", style="dim")
    return result


@asynccontextmanager
async def working(worker: Worker) -> AsyncIterator[None]:
    """Run a worker in this process for the time of a `with`; stop it in the orderly way."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run(stop))
        try:
            yield
        finally:
            stop.set()


async def _show_steps(engine: Engine, run_id: str, progress: Console) -> None:
    """Print each step once it is recorded, until the run ends."""
    shown: set[str] = set()
    ended = False
    while not ended:
        ended = (await engine.get(run_id)).state.is_final
        for record in await engine.steps(run_id):
            if record.key not in shown:
                shown.add(record.key)
                place = record.key.rpartition("/")[2]
                tries = f", attempt {record.attempt}" if record.attempt > 1 else ""
                progress.print(f"  {place:>5}  {record.kind}: {record.outcome}{tries}", style="dim")
        await asyncio.sleep(0.2)


def _is_text(argument: str) -> bool:
    """False for an argument with bytes that are not UTF-8."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


def _asked(app: App, run: Run) -> str:
    payload = run.payload
    return str(payload["text"]) if isinstance(payload, dict) else app.kind


COMMANDS = [investigate]
