"""Checkers: one promise of Kafka per module, with a reference implementation of its rule, and the verdict on a run."""

from checkers.check import Engine, check
from checkers.promises import CONCLUSIONS, PROMISES

__all__ = ["CONCLUSIONS", "PROMISES", "Engine", "check"]
