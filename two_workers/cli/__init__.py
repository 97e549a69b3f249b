"""The command line: `two-workers`.

One command a module, each a thin function over the seam. This is the only place of the package
that knows the app, the engines and the harness, and it imports them when the command runs.

Exit codes: 0 done, 1 the answer is no (a verdict failed, a run failed), 2 the input cannot work
or the answer is unknown, 130 interrupted.
"""

from __future__ import annotations

import signal
import sys

signal.signal(signal.SIGINT, signal.SIG_DFL)  # until `main`: no traceback

import click
from pydantic import ValidationError

from two_workers.cli import (
    compare,
    faults,
    investigate,
    ladder,
    new,
    operate,
    runs,
    serve,
    servers,
    study,
    sweep,
    worker,
)
from two_workers.cli.process import fail
from two_workers.errors import BadInput, RunError

MAP = """\
Two workers picked up the same investigation. Who resumes it?

  1. compare     break real workers on both engines and see what each answer cost
                   two-workers compare            (or: make compare)
                   two-workers sweep --lease 1,2  a longer lease: what it buys, what it costs
  2. study       claim, lease, heartbeat, fence and the rest: by hand, on Temporal, and broken
                   two-workers mapping fence      two-workers explain claim
                   two-workers break fence        two-workers ladder       two-workers quiz
  3. chaos       kill tests against real processes, also for an engine or agent of yours
                   make chaos
  4. swap        run an agent on either engine by one setting; write your own
                   two-workers investigate "why do checkouts fail?" --engine hand_rolled
                   two-workers investigate "why do checkouts fail?" --engine temporal
                   two-workers serve --demo       two-workers new my_agent

  Every command explains itself with --help.
"""


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Two workers picked up the same investigation. Who resumes it?"""
    if context.invoked_subcommand is None:
        click.echo(MAP, nl=False)


for module in (
    compare, sweep, study, ladder, faults, investigate, new, operate, runs, serve, servers, worker,
):  # fmt: skip
    for command in module.COMMANDS:
        cli.add_command(command)


def main() -> None:
    """Run the command line and exit; every expected error is one line on standard error."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path.insert(0, "")  # an app of one's own in this folder, as `python -m` would find it
    try:
        code = cli.main(standalone_mode=False)
    except (BadInput, RunError) as error:
        fail(str(error), 2 if isinstance(error, BadInput) else 1)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or error.title
        fail(f"{place}: {first['msg']}; found {str(first['input'])[:60]!r}", 2)
    except OSError as error:
        fail(f"{error.strerror or error}: {error.filename or 'see --help'}", 2)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "two-workers"
        fail(f"{error.format_message()} (see `{command} --help`)", 2)
    except click.ClickException as error:
        fail(error.format_message(), 2)
    except (KeyboardInterrupt, click.Abort):
        fail("interrupted", 130)
    sys.exit(code if isinstance(code, int) else 0)
