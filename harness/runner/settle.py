"""After healing: wait until the cluster is whole again, so that the final read sees all that survived."""

from __future__ import annotations

import time
from collections.abc import Sequence

from harness.errors import InvalidRun
from harness.model import TopicPartition
from harness.runner.conditions import unsettled
from harness.target import Target

_POLL_S = 0.05
_SHOWN = 5


def settle(target: Target, partitions: Sequence[TopicPartition], timeout_s: float) -> None:
    """Wait until every partition has a leader, a full ISR, and replicas that are equally far.

    Raises:
        InvalidRun: it did not come to that within ``timeout_s``; says what is still missing.
    """
    deadline = time.monotonic() + timeout_s
    while missing := unsettled(target, partitions):
        if time.monotonic() >= deadline:
            more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
            shown = "; ".join(missing[:_SHOWN])
            raise InvalidRun(f"the healed cluster did not settle within {timeout_s:g} s: {shown}{more}.")
        time.sleep(_POLL_S)
