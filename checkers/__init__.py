"""Checkers: one promise of Kafka per module, with a reference implementation of its rule, and the verdict on a run."""

from checkers.registry import CONCLUSIONS, PROMISES
from checkers.verdicts.check import Engine, check

__all__ = ["CONCLUSIONS", "PROMISES", "Engine", "check"]
