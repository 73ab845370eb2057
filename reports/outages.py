"""When each broker did not run: from the faults, the failures of storage, and the next start of the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from faults import traits_of
from harness.fault import ProcessEffect
from reports.lanes.frame import STARTING, Outage
from reports.rows import Fault
from reports.run import Run

Times = Mapping[int, Sequence[int]]
"""By node, ascending."""


def outages(run: Run) -> Sequence[Outage]:
    """Every outage of a broker that the faults and the timeline show, by start."""
    starts, looks = run.starts(), run.looks() if run.sampled else {}
    by_fault = [o for fault in run.faults for o in _of_fault(run, fault, starts, looks)]
    by_disk = [
        Outage(node, time_ns, _next(starts, node, time_ns, run.end_ns), "storage failed")
        for time_ns, node in run.storage_failures()
    ]
    return sorted([*by_fault, *by_disk], key=lambda o: (o.start_ns, o.node))


def _of_fault(run: Run, fault: Fault, starts: Times, looks: Times) -> Iterator[Outage]:
    """When each of its brokers was down; in a sampled timeline also until a sample showed it again."""
    traits = traits_of(fault.kind)
    if traits.shown_as is None or fault.injected_ns is None or not fault.proven:
        return
    healed_ns = run.end_ns if fault.healed_ns is None else fault.healed_ns
    word, is_paused = traits.shown_as, traits.process is ProcessEffect.PAUSES
    for node in (b for b in run.brokers if fault.aims_at(b)):
        end_ns = healed_ns if is_paused else _back(node, fault.injected_ns, starts, healed_ns)
        yield Outage(node, fault.injected_ns, end_ns, word)
        up_ns = min(healed_ns, _next(looks, node, end_ns, end_ns))
        if up_ns > end_ns:
            yield Outage(node, end_ns, up_ns, STARTING)


def _back(node: int, down_ns: int, starts: Times, healed_ns: int) -> int:
    """When it was started to stay: a start that was to be cut short does not count.

    A start at the instant of the injection may be the one that ended the outage; see :mod:`harness.downtime`.
    """
    until_healed = [t for t in starts.get(node, ()) if down_ns <= t <= healed_ns]
    return until_healed[-1] if until_healed else _next(starts, node, down_ns, healed_ns)


def _next(times: Times, node: int, after_ns: int, otherwise_ns: int) -> int:
    return next((t for t in times.get(node, ()) if t > after_ns), otherwise_ns)
