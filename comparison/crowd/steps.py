"""The one step of the crowd that no other app has."""

from __future__ import annotations

from two_workers import Step


class Die(Step[None]):
    """Take the worker's process along, as a crash in native code would."""
