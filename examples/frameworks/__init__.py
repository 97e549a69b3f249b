"""Agents written with a framework, resumed by either engine.

Each file is an ordinary agent of its framework. Only the model object is another one: its client
is `StepOpenAI` (`shared.py`), which makes every request to the model a recorded step. Tools that do
I/O call a step as well. `plan_of` runs the whole, framework included, on a loop without a clock.

| file                  | framework         | fan-out                              |
|-----------------------|-------------------|--------------------------------------|
| `openai_agents.py`    | OpenAI Agents SDK | the SDK calls a turn's tools at once |
| `pydantic_ai_.py`     | pydantic-ai       | pydantic-ai does the same            |
| `langgraph_.py`       | LangGraph         | `Send`, one task for each tool call  |

The limits, which are those of the bridge (`two_workers/bridge.py`):

- A branch that waits for a step goes on when the slowest step of its batch has ended.
- Streaming, timers, threads and sessions that do I/O are refused with an `AgentError`.
- What a framework itself puts into a request has to be the same on a replay. Time stamps and
  random ids that only stay inside it do no harm; tracing is switched off, since it uses threads.
- On Temporal a framework is passed through the sandbox, so a clock that *it* reads goes unnoticed.
  The fingerprint of each step still notices when that changes what is asked.
"""
