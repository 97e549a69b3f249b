"""What any engine promises, hand_rolled promises on its fast path too: the same suite."""

from __future__ import annotations

# ruff: noqa: F403 - pytest collects what a module has under its names
from tests.contract.test_control import *
from tests.contract.test_limits import *
from tests.contract.test_runs import *
