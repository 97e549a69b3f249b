"""Reading folders of log files: the work behind the tools. Standard library only.

`files.py` finds and streams files within bounds, `times.py` reads time stamps, `shapes.py` groups
lines that differ only in numbers, `operations.py` has one function for each tool, and `run.py`
runs one of them: in this process, or as a process of its own.
"""

OUTPUT = 8_000
"""Characters of a tool's answer. Beyond it, lists lose their ends; the JSON stays whole."""
QUOTES = 100_000
"""The same for the tool `quote`, whose answer the agent needs completely."""
