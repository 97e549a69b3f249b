"""Who resumes it? Answered by Temporal.

Read in this order: `workflow.py` (the driver of an agent: hold it beside `hand_rolled/handler.py`),
`step_call.py` (a step becomes an activity), `activities.py` and `heartbeat.py` (one attempt of it),
`progress.py` (what the driver keeps), `views.py` and `records.py` (the four questions, the steps),
`settings.py` (the arms), `gate.py` with `permits.py`, `handlers.py` and `limits.py` (exact limits),
`registry.py` (agents in the sandbox).
`README.md` says how to operate it, and where Temporal gives less or more than the table.

This file stays empty of imports: the workflow sandbox imports it again for each run.
"""
