"""When a broker's log reached an offset, or fell below it, by two successive samples of a real cluster.

No row of a sampled timeline shows what happened between two samples.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from faults import traits_of
from harness.fault_losses import taken
from harness.model import TopicPartition
from reports import rows
from reports.scale import NS, seconds


@dataclass(frozen=True, slots=True)
class Fall:
    """Two successive rows of one broker, of which the second has the lower log end, without a row between for it.

    Attributes:
        start: where the log ended at the second look; ``end``: at the first, exclusive.
        taken: which fault in between took what of this log, in words; None: no proof names any.
    """

    before: rows.State
    after: rows.State
    start: int
    end: int
    taken: str | None

    @property
    def restarted(self) -> bool:
        """Whether the broker was started anew between the two."""
        return self.before.incarnation != self.after.incarnation


def falls(
    states: Sequence[rows.State],
    cuts: Sequence[rows.Truncation],
    faults: Sequence[rows.Fault],
    partition: TopicPartition,
) -> Iterator[Fall]:
    """Every time a broker's log had become shorter without a row for it; ``states`` are those of one broker."""
    for before, after in pairwise(s for s in states if s.log_end_offset is not None):
        start, end = after.log_end_offset or 0, before.log_end_offset or 0
        recorded = any(c.node == after.node and before.time_ns <= c.time_ns <= after.time_ns for c in cuts)
        if start < end and not recorded:
            between = (f for f in faults if f.proven and _is_between(f, before, after))
            took = (
                (what, f) for f in between if (what := taken(traits_of(f.kind).disk, f.proof, partition)) is not None
            )
            yield Fall(before, after, start, end, next((f"{f.kind} {f.name} {what}" for what, f in took), None))


def _is_between(fault: rows.Fault, before: rows.State, after: rows.State) -> bool:
    if fault.injected_ns is None or not fault.aims_at(after.node):
        return False
    effect_ns = fault.proven_ns or fault.injected_ns
    return fault.injected_ns <= after.time_ns and before.time_ns <= effect_ns


def at(states: Sequence[rows.State], time_ns: int) -> rows.State | None:
    """A broker's last state by then."""
    place = bisect_right(states, time_ns, key=lambda s: s.time_ns)
    return states[place - 1] if place else None


def reached(states: Sequence[rows.State], time_ns: int, end_offset: int, epoch: int | None) -> rows.State | None:
    """The first sample after a time in which the log reaches an offset, if the broker was in that epoch still."""
    found = next((s for s in states if s.time_ns > time_ns and (s.log_end_offset or 0) >= end_offset), None)
    return found if found is not None and found.leader_epoch == epoch else None


def marks(state: rows.State, since_ns: int) -> str:
    """The offsets in one sample, and how long before or after a time it was."""
    apart = state.time_ns - since_ns
    when = f"{age(-apart)} before" if apart <= 0 else f"{age(apart)} after"
    return f"broker {state.node} hw {state.high_watermark}, log end {state.log_end_offset} (seen {when})"


def age(duration_ns: int) -> str:
    """A duration in words: milliseconds below a second."""
    return f"{duration_ns // (NS // 1000)} ms" if duration_ns < NS else seconds(duration_ns)


def ends_behind(states: Mapping[int, Sequence[rows.State]], offset: int) -> Sequence[rows.State]:
    """The last state of each broker whose log begins behind an offset in the end."""
    lasts = [group[-1] for _, group in sorted(states.items()) if group]
    return [s for s in lasts if (s.log_start_offset or 0) > offset]
