"""The agent: ask the model, do what it asks for, check what it claims, publish.

It awaits nothing but steps and reads no clock, no random number and no file, so it runs the same
way on every engine and on every replay. Its loop is bounded by `Question.max_model_calls`, and
every way in which a model can misbehave ends in a report or in a failed run:

| the model ...                        | the agent ...                                         |
|--------------------------------------|-------------------------------------------------------|
| asks for tools                       | calls them at the same time                           |
| asks in a malformed way              | tells it what was wrong                               |
| only talks                           | reminds it of the tools                               |
| says the conversation is too long    | halves it and asks again                              |
| refuses, or a filter intervenes      | publishes an inconclusive report                      |
| cites a line that is not as quoted   | drops the citation, and the finding if none is left   |
| never hands in a report              | publishes an inconclusive report                      |
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from investigation.steps import (
    CONVERSATION,
    REPLY_TEXT,
    REPORT_TOOL,
    TOOL_ARGUMENTS,
    TOOL_CALLS,
    AskModel,
    CallTool,
    Citation,
    Draft,
    Finding,
    ModelReply,
    PublishReport,
    Question,
    Quote,
    Quotes,
    Report,
    ToolCall,
    ToolResult,
    Turn,
    fit,
    read_draft,
)
from two_workers import StepFailed, do, do_all

SMALLEST_CONVERSATION = CONVERSATION // 16
"""When a model calls even this too long, there is no point in going on."""


@dataclass
class Progress:
    """What the investigation has gathered, and what it has used up."""

    turns: list[Turn] = field(default_factory=list)
    room: int = CONVERSATION
    model: str = ""
    model_calls: int = 0
    tool_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: int = 0

    def add(self, reply: ModelReply) -> None:
        self.model = reply.model
        self.model_calls += 1
        self.tokens_in += reply.tokens_in
        self.tokens_out += reply.tokens_out
        self.cost += reply.cost


async def investigate(question: Question) -> Report:
    """Answer a question about a folder of log files, with findings that cite file and line."""
    progress = Progress()
    for remaining in reversed(range(question.max_model_calls)):
        turns = fit(progress.turns, progress.room)
        reply = await do(AskModel(question=question.text, turns=turns, must_report=remaining == 0))
        progress.add(reply)
        match reply.stop:
            case "refused" | "filtered":
                return await give_up(question, progress, f"the model {reply.stop}: {reply.text}")
            case "overflow" if progress.room <= SMALLEST_CONVERSATION:
                return await give_up(question, progress, f"it does not fit: {reply.text}")
            case "overflow":
                progress.room = min(progress.room, sum(turn.size() for turn in turns)) // 2
                continue
            case _:
                pass
        draft = await take_turn(question, progress, reply)
        if draft is not None:
            return await conclude(question, progress, draft)
    return await give_up(question, progress, "the model handed in no report in its last call")


async def take_turn(question: Question, progress: Progress, reply: ModelReply) -> Draft | None:
    """Do what the reply asks for and remember it. Returns the draft report if it holds one."""
    results: dict[int, str] = {}
    wanted: dict[int, CallTool] = {}
    for position, call in enumerate(reply.calls):
        if call.name == REPORT_TOOL:
            draft = read_draft(call.arguments)
            if isinstance(draft, Draft):
                return draft
            results[position] = f"error: {draft}"
            continue
        step = read_call(question, call, position)
        if isinstance(step, CallTool):
            wanted[position] = step
        else:
            results[position] = f"error: {step}"
    # Independent of each other, so all at once. A tool that stays unreachable is no reason to
    # give up: the model learns of it and may do without.
    outcomes = await do_all(list(wanted.values()), keep_failures=True)
    progress.tool_calls += len(wanted)
    results |= {
        position: result_text(outcome) for position, outcome in zip(wanted, outcomes, strict=True)
    }
    progress.turns.append(
        Turn(
            text=reply.text[:REPLY_TEXT],
            calls=tuple(shorten(question, call) for call in reply.calls),
            results=tuple(results[position] for position in range(len(reply.calls))),
        )
    )
    return None


def read_call(question: Question, call: ToolCall, position: int) -> CallTool | str:
    """The step that a tool call asks for, or what is wrong with it in words for the model."""
    if position >= TOOL_CALLS:
        return f"at most {TOOL_CALLS} tool calls at once; ask for this one again"
    if len(call.arguments) > TOOL_ARGUMENTS:
        return f"arguments longer than {TOOL_ARGUMENTS} characters"
    try:
        arguments = json.loads(call.arguments or "{}")
        # Python reads more than JSON allows (NaN, half characters), and a record must not hold it.
        json.dumps(arguments, allow_nan=False, ensure_ascii=False).encode()
        if not isinstance(arguments, dict):
            return f"the arguments must be a JSON object, not {type(arguments).__name__}"
        return CallTool(corpus=question.corpus, tool=call.name, arguments=arguments)
    except (ValueError, RecursionError) as error:
        return f"the arguments are not valid JSON: {str(error)[:200]}"


def shorten(question: Question, call: ToolCall) -> ToolCall:
    """A call as the model is reminded of it: malformed or huge arguments are not repeated."""
    sound = isinstance(read_call(question, call, 0), CallTool)
    return call if sound else call.model_copy(update={"arguments": "{}"})


def result_text(outcome: ToolResult | StepFailed) -> str:
    """A tool's outcome in words for the model."""
    if isinstance(outcome, StepFailed):
        return f"error: the tool could not be reached: {outcome.message}"
    return outcome.text if outcome.ok else f"error: {outcome.text}"


async def conclude(question: Question, progress: Progress, draft: Draft) -> Report:
    """Compare every citation with its file, keep what is true, and publish."""
    looked_up = await look_up(question, progress, draft)
    if isinstance(looked_up, str):
        return await give_up(question, progress, f"citations could not be checked: {looked_up}")
    quotes = iter(looked_up)
    findings: list[Finding] = []
    unsupported: list[str] = []
    for drafted in draft.findings:
        citations = tuple(
            Citation(file=quote.file, line=quote.line, text=quote.text)
            for quote in [next(quotes) for _ in drafted.citations]
            if quote.found
        )
        if citations:
            findings.append(
                Finding(title=drafted.title, detail=drafted.detail, citations=citations)
            )
        else:
            unsupported.append(drafted.title)
    return await publish(
        report(
            question,
            progress,
            answer=draft.answer,
            confidence=draft.confidence,
            findings=tuple(findings),
            next_steps=draft.next_steps,
            unsupported=tuple(unsupported),
        )
    )


async def look_up(question: Question, progress: Progress, draft: Draft) -> tuple[Quote, ...] | str:
    """What the cited lines really say, in the order of the claims; or why that is unknown."""
    claims = [claim.model_dump() for finding in draft.findings for claim in finding.citations]
    if not claims:
        return ()
    step = CallTool(corpus=question.corpus, tool="quote", arguments={"claims": claims})
    progress.tool_calls += 1
    (outcome,) = await do_all([step], keep_failures=True)
    if isinstance(outcome, StepFailed) or not outcome.ok:
        return result_text(outcome)
    return Quotes.model_validate_json(outcome.text).quotes


async def give_up(question: Question, progress: Progress, reason: str) -> Report:
    """End without an answer, and say why."""
    return await publish(
        report(
            question,
            progress,
            answer="The investigation ended without an answer.",
            confidence="none",
            inconclusive=reason[:1_000],
        )
    )


def report(question: Question, progress: Progress, **content: Any) -> Report:
    """A report that also says what it took."""
    return Report(
        question=question.text,
        model=progress.model,
        model_calls=progress.model_calls,
        tool_calls=progress.tool_calls,
        tokens_in=progress.tokens_in,
        tokens_out=progress.tokens_out,
        cost=progress.cost,
        **content,
    )


async def publish(finished: Report) -> Report:
    """The last step of every investigation."""
    await do(PublishReport(report=finished))
    return finished
