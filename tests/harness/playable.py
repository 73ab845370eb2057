"""Which scenarios the built-in brokers can play."""

from __future__ import annotations

from harness.errors import UsageError
from harness.runner import plan
from harness.scenario import Scenario


def is_playable(one: Scenario) -> bool:
    """Whether a plan can be made: the links between built-in brokers do not stall."""
    try:
        plan(one)
    except UsageError:
        return False
    return True
