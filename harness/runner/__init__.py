"""Runs a scenario: ``plan`` validates it, ``run`` executes it, ``heal_leftovers`` cleans up after killed harnesses."""

from harness.runner.journal import heal_leftovers
from harness.runner.plan import Plan, plan
from harness.runner.planned_chaos import ChaosFault
from harness.runner.reporting import Reporter
from harness.runner.run import BrokenOff, LeftBehind, run

__all__ = ["BrokenOff", "ChaosFault", "LeftBehind", "Plan", "Reporter", "heal_leftovers", "plan", "run"]
