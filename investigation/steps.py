"""What the investigating agent can ask for, and what it gets back.

Three steps: `AskModel`, `CallTool`, `PublishReport`. Everything is a frozen pydantic model,
because everything here crosses a process boundary and is recorded.

**How large a run becomes.** Every recorded byte is bounded: a tool's output by `logs.OUTPUT`, a
model's reply by `REPLY_TEXT` and `TOOL_CALLS`, and the conversation that one `AskModel` carries by
`CONVERSATION`. An unbounded conversation would make a run's history grow with the square of its
model calls, since each call repeats all the earlier ones; with the bound it grows linearly. The
price: in a long investigation the model sees old tool results only in shortened form. (Sending
only what is new, by reference, would be linear as well, but needs a store that all workers share.)

This module is light on purpose: it imports pydantic and the seam, nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from two_workers import MicroUSD, Step

TOOL_CALLS = 8
"""Tool calls that one reply may ask for; further ones are answered with an error."""
TOOL_ARGUMENTS = 2_000
"""Characters of one tool call's arguments; longer ones are answered with an error."""
REPLY_TEXT = 4_000
"""Characters of a reply's text that are kept."""
REPORT_ARGUMENTS = 40_000
"""Characters of the report that a model hands in."""
CONVERSATION = 96_000
"""Characters of conversation that one model call carries, beside the question. The newest turn
fits whole: `TOOL_CALLS` results and arguments."""

REPORT_TOOL = "report"
"""The tool by which the model hands in its report. The agent answers it, no effect does."""


_NO_ZERO_BYTE = r"^[^\x00]*$"
"""Databases refuse a zero byte in text, so it must not get into a record."""


def without_zero_bytes(text: str) -> str:
    """For text that someone else wrote; what we ask for ourselves is refused instead."""
    return text.replace("\0", "")


Text = Annotated[str, BeforeValidator(lambda v: without_zero_bytes(v) if isinstance(v, str) else v)]


class Frozen(BaseModel):
    """A record that crosses a process boundary."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Question(Frozen):
    """What a person wants to know about a folder of log files: the payload of a run.

    `corpus` is a folder (or one file) that every worker can read under this path; empty means the
    incident that comes with the package.
    """

    text: str = Field(min_length=1, max_length=2_000, pattern=_NO_ZERO_BYTE)
    corpus: str = Field(default="", max_length=1_000, pattern=_NO_ZERO_BYTE)
    max_model_calls: int = Field(default=10, ge=1, le=200)


# Asking the model.


class ToolCall(Frozen):
    """A tool that the model wants called. `arguments` is what it wrote: hopefully JSON."""

    id: str
    name: str
    arguments: str


class Turn(Frozen):
    """One reply of the model, and the results of the tools that it called, in the same order."""

    text: str
    calls: tuple[ToolCall, ...]
    results: tuple[str, ...]

    def size(self) -> int:
        """Characters, near enough to what the model is sent."""
        called = sum(len(call.name) + len(call.arguments) for call in self.calls)
        return len(self.text) + called + sum(len(result) for result in self.results)

    def shortened(self, keep: int = 200) -> Turn:
        """The same turn with only the beginning of each result."""
        return self.model_copy(
            update={
                "results": tuple(
                    result if len(result) <= keep else f"{result[:keep]} ... (shortened)"
                    for result in self.results
                )
            }
        )


class ModelReply(Frozen):
    """What the model answered, why it stopped, and what that cost.

    `refused` and `filtered` (by a content filter) carry the reason as text. `overflow` means that
    the conversation was too long for this model; nothing was paid.
    """

    stop: Literal["answered", "truncated", "refused", "filtered", "overflow"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    model: str
    tokens_in: int = Field(ge=0)
    tokens_out: int = Field(ge=0)
    cost: MicroUSD = Field(ge=0)


class AskModel(Step[ModelReply]):
    """Ask the model what to do next. With `must_report` it may only hand in its report."""

    question: str
    turns: tuple[Turn, ...]
    must_report: bool = False


def fit(turns: Sequence[Turn], limit: int = CONVERSATION) -> tuple[Turn, ...]:
    """The conversation in at most `limit` characters: newest whole, older shortened, oldest gone.

    The newest turn is kept even when it alone is larger, in shortened form.
    """
    kept: list[Turn] = []
    room = limit
    for turn in reversed(turns):
        chosen = turn if turn.size() <= room else turn.shortened()
        if kept and chosen.size() > room:
            break
        kept.append(chosen)
        room -= chosen.size()
    return tuple(reversed(kept))


# Calling a tool.


class ToolResult(Frozen):
    """What a tool found. A tool's error (`ok=False`) is a result too: the model reads it."""

    ok: bool
    text: str


class CallTool(Step[ToolResult]):
    """Call one log tool on the corpus."""

    corpus: str
    tool: str
    arguments: dict[str, JsonValue]


# Reporting.


class Citation(Frozen):
    """A line of a log file that supports a finding. `text` comes from the file."""

    file: str
    line: int
    text: str


class Finding(Frozen):
    """One thing that the logs show."""

    title: str
    detail: str
    citations: tuple[Citation, ...]


class Report(Frozen):
    """The end of an investigation.

    Every citation was compared with the file. Claims of the model that no true citation supports
    are not findings: their titles are in `unsupported`. `inconclusive` says why an investigation
    ended without an answer.
    """

    question: str
    answer: str
    confidence: Literal["high", "medium", "low", "none"]
    findings: tuple[Finding, ...] = ()
    next_steps: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    inconclusive: str | None = None
    model: str = ""
    model_calls: int = 0
    tool_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: MicroUSD = 0


class Published(Frozen):
    """Where the report went; empty when no place was configured."""

    where: str


class PublishReport(Step[Published]):
    """Hand the report to the outside. Safe to repeat: a place is written once per run."""

    report: Report


# What the model hands in, before the agent has checked it.


class Claim(BaseModel):
    """A citation as the model gives it: `quote` is a piece of the line, copied."""

    file: Text = Field(max_length=500)
    line: int = Field(ge=1)
    quote: Text = Field(min_length=1, max_length=1_000)


class DraftFinding(BaseModel):
    """A finding as the model gives it."""

    title: Text = Field(min_length=1, max_length=300)
    detail: Text = Field(max_length=3_000)
    citations: tuple[Claim, ...] = Field(max_length=8)


class Draft(BaseModel):
    """The arguments of the tool `report`."""

    answer: Text = Field(min_length=1, max_length=4_000)
    confidence: Literal["high", "medium", "low"]
    findings: tuple[DraftFinding, ...] = Field(default=(), max_length=12)
    next_steps: tuple[Text, ...] = Field(default=(), max_length=8)


class Quote(BaseModel):
    """One line of the tool `quote`: the claimed quote was found in it, or why not."""

    file: str
    line: int
    found: bool
    text: str


class Quotes(BaseModel):
    """The result of the tool `quote`, in the order of the claims."""

    quotes: tuple[Quote, ...]


def read_draft(arguments: str) -> Draft | str:
    """The draft that the model handed in, or what is wrong with it in words for the model."""
    if len(arguments) > REPORT_ARGUMENTS:
        return f"the report is {len(arguments)} characters long; at most {REPORT_ARGUMENTS}"
    try:
        return Draft.model_validate_json(arguments)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}"
            for fault in error.errors(include_url=False)[:5]
        ]
        return "the report is not valid: " + "; ".join(faults)
