"""Checkers: one promise per module, in words and as an executable reference, and the verdict on a run."""

from checkers.check import Engine, check
from checkers.promises import CONCLUSIONS, PROMISES

__all__ = ["CONCLUSIONS", "PROMISES", "Engine", "check"]
