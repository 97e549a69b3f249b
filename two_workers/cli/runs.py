"""`two-workers runs | who | limits`: look at runs and steer them, on either engine."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.table import Table

from two_workers.cli.options import configured_engine, console, engine_option, plain_table, since
from two_workers.cli.process import run_async
from two_workers.errors import BadInput
from two_workers.money import MicroUSD
from two_workers.protocol import Limits, RunState, RunView, StepRecord


@click.group()
def runs() -> None:
    """List, show, cancel runs."""


@runs.command("list")
@engine_option
@click.option("--state", type=click.Choice([s.value for s in RunState]), help="Only this state.")
@click.option("--tenant", help="Only this tenant.")
@click.option("--kind", help="Only this kind.")
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="At most this many, newest first.",
)
def list_runs(
    engine: str, state: str | None, tenant: str | None, kind: str | None, limit: int
) -> None:
    """List runs, newest first."""

    async def listed() -> None:
        async with configured_engine(engine) as it:
            found = await it.list_runs(
                state=RunState(state) if state else None, tenant=tenant, kind=kind, limit=limit
            )
        console().print(_runs_table(found) if found else "no runs")

    run_async(listed())


@runs.command()
@engine_option
@click.argument("run_id")
def show(engine: str, run_id: str) -> None:
    """Show one run and its recorded steps."""

    async def shown() -> None:
        async with configured_engine(engine) as it:
            view, steps = await it.get(run_id), await it.steps(run_id)
        for label, value in _facts(view):
            click.echo(f"{click.style(f'{label:>12}', bold=True)}  {value}")
        console().print(_steps_table(steps))

    run_async(shown())


@runs.command()
@engine_option
@click.argument("run_id")
@click.option("--reason", default="", help="Kept with the run.")
def cancel(engine: str, run_id: str, reason: str) -> None:
    """Request cancellation, durably."""

    async def cancelled() -> RunView:
        async with configured_engine(engine) as it:
            return await it.cancel(run_id, reason=reason)

    view = run_async(cancelled())
    click.echo(f"{view.run_id}: {view.state}, cancel requested: {view.cancel_requested}")


@click.command()
@engine_option
def who(engine: str) -> None:
    """Answer a scheduler's four questions about every open run."""

    async def asked() -> list[RunView]:
        async with configured_engine(engine) as it:
            return [v for v in await it.list_runs(limit=500) if not v.state.is_final]

    views = run_async(asked())
    table = plain_table("run", "ready?", "owner", "fence", "owned until")
    for view in views:
        table.add_row(
            view.run_id,
            "yes" if view.state is RunState.PENDING else f"no: {view.state}",
            view.owner or "-",
            ".".join(map(str, view.fence)) if view.fence else "-",
            since(view.owned_until),
        )
    console().print(table if views else "no open runs")
    for recovery in dict.fromkeys(view.recovery for view in views if view.recovery):
        affected = [view.run_id for view in views if view.recovery == recovery]
        some = f"{affected[0]}" + (f" and {len(affected) - 1} more" if affected[1:] else "")
        click.echo(f"if abandoned, {some}: {recovery}")


@click.group()
def limits() -> None:
    """Show and set the limits that hold work back."""


@limits.command("show")
@engine_option
def show_limits(engine: str) -> None:
    """Show the limits in force."""

    async def read() -> Limits:
        async with configured_engine(engine) as it:
            return await it.limits()

    _say_limits(run_async(read()))


@limits.command("set")
@engine_option
@click.argument("assignments", nargs=-1, required=True, metavar="NAME=VALUE...")
def set_limits(engine: str, assignments: tuple[str, ...]) -> None:
    """Change limits: max_active=10 max_active_per_tenant=3 tenant:acme=5 pool:model=8.

    `none` for a value removes the limit. What is not named stays.
    """

    async def changed() -> Limits:
        async with configured_engine(engine) as it:
            new = _apply(await it.limits(), assignments)
            await it.set_limits(new)
            return new

    _say_limits(run_async(changed()))


def _say_limits(limits: Limits) -> None:
    for name, value in [
        ("max_active", limits.max_active),
        ("max_active_per_tenant", limits.max_active_per_tenant),
        *((f"tenant:{tenant}", number) for tenant, number in limits.tenants.items()),
        *((f"pool:{pool}", number) for pool, number in limits.pools.items()),
    ]:
        click.echo(f"{name:>22}  {'no limit' if value is None else value}")


def _apply(limits: Limits, assignments: tuple[str, ...]) -> Limits:
    values = {**limits.model_dump(), "tenants": {**limits.tenants}, "pools": {**limits.pools}}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not ((text.isascii() and text.isdigit()) or text == "none"):
            raise BadInput(
                f"{assignment!r}: expected NAME=NUMBER or NAME=none, as in max_active=10"
            )
        number = None if text == "none" else int(text)
        group, colon, member = name.partition(":")
        if colon and group in ("tenant", "pool"):
            values[f"{group}s"].pop(member, None)
            if number is not None:
                values[f"{group}s"][member] = number
        elif name in ("max_active", "max_active_per_tenant"):
            values[name] = number
        else:
            raise BadInput(
                f"unknown limit {name!r}; known: max_active, max_active_per_tenant, "
                "tenant:NAME, pool:NAME"
            )
    return Limits(**values)


def _runs_table(views: Sequence[RunView]) -> Table:
    table = plain_table("run", "kind", "tenant", "state", "owner", "cost", "age")
    for view in views:
        table.add_row(
            view.run_id,
            view.kind,
            view.tenant,
            view.state + (" (cancel requested)" if _being_cancelled(view) else ""),
            view.owner or "-",
            _dollars(view.cost),
            since(view.created_at),
        )
    return table


def _being_cancelled(view: RunView) -> bool:
    return view.cancel_requested and not view.state.is_final


def _steps_table(records: Sequence[StepRecord]) -> Table:
    table = plain_table("step", "kind", "outcome", "attempt", "worker")
    for record in records:
        key = record.key.rpartition("/")[2]
        table.add_row(key, record.kind, record.outcome, str(record.attempt), record.worker or "-")
    return table


def _facts(view: RunView) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [
        ("run", view.run_id),
        ("kind", view.kind),
        ("tenant", view.tenant),
        ("state", view.state),
        ("created", f"{view.created_at:%Y-%m-%d %H:%M:%S} UTC"),
        ("cost", _dollars(view.cost) + (f" of {_dollars(view.budget)}" if view.budget else "")),
    ]
    if view.cancel_requested:
        facts.append(("cancel", "requested"))
    if view.failure:
        facts.append(("failure", view.failure))
    if view.owner:
        fence = ".".join(map(str, view.fence or ()))
        facts += [("owner", view.owner), ("fence", fence), ("owned until", since(view.owned_until))]
    if view.recovery:
        facts.append(("recovery", view.recovery))
    return [*facts, *((name, value) for name, value in view.native.items() if value is not None)]


def _dollars(amount: MicroUSD) -> str:
    return f"${amount / 1e6:.4f}"


COMMANDS = [runs, who, limits]
