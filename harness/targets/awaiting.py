"""Waiting for a cluster: until something holds of it, or else what its nodes have said last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Protocol

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from harness.errors import EnvironmentFault
from harness.target import ClusterView

WHAT_NODES_SAID = " Their logs end with:"
"""How a complaint goes on with the ends of the nodes' logs, which name places on this machine."""


class Talkative(Protocol):
    """A node that leaves a log."""

    @property
    def name(self) -> str:
        """Of the node."""
        ...

    def log_tail(self) -> str:
        """The end of what it has said."""
        ...


def answered_view(look: Callable[[], ClusterView], timeout_s: float, poll_s: float) -> ClusterView:
    """What the controller says, asked again while it says of nobody that he lives: it may be late to answer.

    After ``timeout_s`` it is what was last said.
    """
    deadline = time.monotonic() + timeout_s
    while not (view := look()).live and time.monotonic() < deadline:
        time.sleep(poll_s)
    return view


def await_that(
    holds: Callable[[], bool], complaint: str, nodes: Iterable[Talkative], timeout_s: float, poll_s: float
) -> None:
    """Wait until ``holds`` does, looking every ``poll_s``.

    Raises:
        EnvironmentFault: it has not within ``timeout_s``: ``complaint``, and the ends of the nodes' logs.
    """
    waiting = Retrying(
        retry=retry_if_result(lambda held: not held), wait=wait_fixed(poll_s), stop=stop_after_delay(timeout_s)
    )
    try:
        waiting(holds)
    except RetryError:
        tails = "; ".join(f"node {node.name}: {node.log_tail()}" for node in nodes)
        raise EnvironmentFault(f"{complaint} within {timeout_s:g} s.{WHAT_NODES_SAID} {tails}") from None
