"""Starts a broker again that has halted, or has taken a log directory offline, because of an injected disk error."""

from __future__ import annotations

from harness.controls import Shutdowns
from harness.target import Receipt


def bring_back(target: Shutdowns, node: str) -> None:
    """Start a broker whose disk is sound again: one that runs without one of its directories shuts down first.

    Raises:
        EnvironmentFault: it does not report whether it does.
    """
    if target.is_running(node).holds and target.offline_log_dirs(node):
        target.shut_down(node)
    if not target.is_running(node).holds:
        target.restart(node)


def end(target: Shutdowns, node: str) -> None:
    """Have a broker shut down that may be running still."""
    if target.is_running(node).holds:
        target.shut_down(node)


def is_back(target: Shutdowns, node: str) -> Receipt:
    """Whether the broker runs with all its log directories.

    Raises:
        EnvironmentFault: it does not report whether it has them all.
    """
    running = target.is_running(node)
    if running.holds and (offline := target.offline_log_dirs(node)):
        return Receipt(False, f"{running.seen}; its log directories {list(offline)} are offline")
    return running
