"""After healing: wait until the cluster is whole again, so that the final read sees all that survived."""

from __future__ import annotations

from collections.abc import Sequence

from harness.clock import PacedClock
from harness.errors import InvalidRun
from harness.model import TopicPartition
from harness.runner.conditions import unsettled
from harness.target import Target

_POLL_S = 0.05
_SHOWN = 5


def settle(target: Target, partitions: Sequence[TopicPartition], timeout_s: float, clock: PacedClock) -> list[str]:
    """Wait until every partition has a leader, a full ISR, and replicas that are equally far.

    Returns:
        What is still missing after ``timeout_s``, one phrase each; empty when the cluster is whole.
    """
    deadline_ns = clock.monotonic_ns() + int(timeout_s * 1e9)
    while (missing := unsettled(target, partitions)) and clock.monotonic_ns() < deadline_ns:
        clock.sleep(_POLL_S)
    return missing


def require_settled(missing: Sequence[str], timeout_s: float) -> None:
    """Refuse a cluster that :func:`settle` has not seen whole.

    Raises:
        InvalidRun: ``missing`` is not empty.
    """
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        shown = "; ".join(missing[:_SHOWN])
        raise InvalidRun(f"the healed cluster did not settle within {timeout_s:g} s: {shown}{more}.")
