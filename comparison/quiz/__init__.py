"""The exit criteria: predict what a run will show, then run it.

- `questions`  what is asked, and how its answer is read off a recording; no answer is written down
- `ask`        ask, run the scenarios, compare
"""
