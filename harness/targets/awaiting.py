"""Waits until a condition holds of a cluster; the error message has the last lines of its nodes' logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Protocol

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from harness.errors import EnvironmentFault
from harness.target import ClusterView

WHAT_NODES_SAID = " Their logs end with:"
"""What separates a complaint from the ends of the nodes' logs, which contain paths of this machine."""


class Talkative(Protocol):
    """A node that leaves a log."""

    @property
    def name(self) -> str:
        """Of the node."""
        ...

    def log_tail(self) -> str:
        """The end of its log."""
        ...


def answered_view(look: Callable[[], ClusterView], timeout_s: float, poll_s: float) -> ClusterView:
    """The controller's view, asked for again while it has no live broker: the controller may be late to answer.

    After ``timeout_s`` it is the last view.
    """
    deadline = time.monotonic() + timeout_s
    while not (view := look()).live and time.monotonic() < deadline:
        time.sleep(poll_s)
    return view


def await_that(
    holds: Callable[[], bool], complaint: str, nodes: Iterable[Talkative], timeout_s: float, poll_s: float
) -> None:
    """Wait until ``holds`` does, checking every ``poll_s``.

    Raises:
        EnvironmentFault: it did not within ``timeout_s``: ``complaint``, and the ends of the nodes' logs, if any.
    """
    waiting = Retrying(
        retry=retry_if_result(lambda held: not held), wait=wait_fixed(poll_s), stop=stop_after_delay(timeout_s)
    )
    try:
        waiting(holds)
    except RetryError:
        tails = "; ".join(f"node {node.name}: {node.log_tail()}" for node in nodes)
        said = f"{WHAT_NODES_SAID} {tails}" if tails else ""
        raise EnvironmentFault(f"{complaint} within {timeout_s:g} s.{said}") from None
