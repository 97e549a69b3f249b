"""What the store promises, it promises on the fast path too: its own tests, run again."""

from __future__ import annotations

# ruff: noqa: F403 - pytest collects what a module has under its names
from tests.hand_rolled.test_driver_replay import *
from tests.hand_rolled.test_driver_steps import *
from tests.hand_rolled.test_driver_stops import *
from tests.hand_rolled.test_fence import *
from tests.hand_rolled.test_lifecycle import *
from tests.hand_rolled.test_limits import *
from tests.hand_rolled.test_model import *
from tests.hand_rolled.test_workers import *
