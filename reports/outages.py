"""When which broker did not run: from the faults, the failures of storage, and the next start of the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reports.lanes.frame import Outage
from reports.rows import Fault
from reports.run import Run

Starts = Mapping[int, Sequence[int]]
"""By node: when it was started, ascending."""

_WORDS = {"kill": "killed", "pause": "paused"}


def outages(run: Run) -> Sequence[Outage]:
    """Every outage of a broker that the faults and the timeline tell of, by start."""
    starts = run.starts()
    by_fault = [o for fault in run.faults for o in _of_fault(run, fault, starts)]
    by_disk = [
        Outage(node, time_ns, _next_start(node, time_ns, starts, run.end_ns), "storage failed")
        for time_ns, node in run.storage_failures()
    ]
    return sorted([*by_fault, *by_disk], key=lambda o: (o.start_ns, o.node))


def _of_fault(run: Run, fault: Fault, starts: Starts) -> Iterator[Outage]:
    if fault.kind not in _WORDS or fault.injected_ns is None or not fault.proven:
        return
    healed_ns = run.end_ns if fault.healed_ns is None else fault.healed_ns
    for node in (b for b in run.brokers if fault.aims_at(b)):
        end_ns = _next_start(node, fault.injected_ns, starts, healed_ns) if fault.kind == "kill" else healed_ns
        yield Outage(node, fault.injected_ns, end_ns, _WORDS[fault.kind])


def _next_start(node: int, after_ns: int, starts: Starts, otherwise_ns: int) -> int:
    return next((t for t in starts.get(node, ()) if t > after_ns), otherwise_ns)
