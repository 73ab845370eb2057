"""What a broker has written is there when it starts again: killing a process takes nothing from its disk.

``shrunk-log``: a broker began a life with a log that ends below the end in the last row of its life before, or that
begins above the start in that row; and no fault had taken anything from its disk. A kill, a pause, a clean stop and a
halt leave the page cache to the kernel, so what was in the log by a row is in its files, and only a batch that is in no
row yet may be torn. The replica may fetch again what it dropped from the end; but meanwhile there are fewer copies than
the ISR has members.

The first row of a life about a replica gives which log it found; where that row is of a cut, the cut began at the end
of it. Not judged:

* where a power loss, a full disk or a wiped disk was in force on the node in between, or a log directory of it had
  failed, or its log been damaged, at any time before: see :mod:`checkers.views.lossy_failures`;
* where the replica was, or is, offline, or the first row shows that its log begins anew, and not where it ended;
* in real time the end, where the replica did not lead to the last by every row of the controller, for it may have been
  killed between a cut of its log and the row about it; and the beginning, for so it may between a deletion and its row.
  A leader does not cut, and nothing of virtual time is killed within an event;
* in a sampled timeline, whose last row is not its life's last state.

Severity: ``VIOLATION``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from checkers.views.conclusion import Conclusion, cite, detail, seen_at
from checkers.views.configured import Configured
from checkers.views.fault_journal import FaultJournal
from checkers.views.row import Row
from checkers.views.states import States
from faults import traits_of
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    Needs,
    Sampled,
    Unseen,
)
from harness.downtime import in_force
from harness.facts import StateInterval
from harness.fault import DiskEffect
from harness.model import NodeId, TopicPartition, node_name

SHRUNK_LOG = AnomalyKind(
    name="shrunk-log",
    invariants=("R9",),
    meaning="A broker that was started again had less in its log than before, and lost no disk.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE, Needs.FAULTS}),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.RANGE,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.NONE, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (SHRUNK_LOG,)

_LASTING = frozenset({DiskEffect.DAMAGE, DiskEffect.DIRECTORY})
"""What shows at some later start: damage that its broker has not read yet, a directory that comes back empty."""


def conclude(states: States, configured: Configured, journal: FaultJournal) -> Iterator[Conclusion]:
    """Every life in one run that began with less than the life before had."""
    for place, nodes in () if states.sampled else states.reported.items():
        for intervals in nodes.values():
            for before, after in pairwise(intervals):
                if before.incarnation < after.incarnation and not _is_excused(journal, before, after):
                    yield from _cut_off(states, configured, place, before, after)
                    yield from _begun_later(configured, place, before, after)


def _cut_off(
    states: States, configured: Configured, place: TopicPartition, before: StateInterval, after: StateInterval
) -> Iterator[Conclusion]:
    found, had = _found(after), before.log_end_offset
    is_judged = configured.is_virtual or _led_to_the_last(states.decided.get(place, ()), before, after)
    if is_judged and found is not None and had is not None and found < had:
        yield _shrunk(configured, place, (before, after), (found, had), "ends")


def _begun_later(
    configured: Configured, place: TopicPartition, before: StateInterval, after: StateInterval
) -> Iterator[Conclusion]:
    found, had = after.log_start_offset, before.log_start_offset
    is_judged = configured.is_virtual and after.kind == "state"
    if is_judged and found is not None and had is not None and found > had:
        yield _shrunk(configured, place, (before, after), (had, found), "begins")


def _shrunk(
    configured: Configured,
    place: TopicPartition,
    rows: tuple[StateInterval, StateInterval],
    gone: tuple[int, int],
    what: str,
) -> Conclusion:
    before, after = rows
    had, found = gone if what == "begins" else gone[::-1]
    finding = configured.finding(
        "shrunk-log", place, offset=gone[0], until=gone[1], leader_epoch=before.leader_epoch, **seen_at(after)
    )
    why = (
        f"Node {after.node}'s log of {place} {what} at {found} when it is started again; in the last row of its "
        f"life {before.incarnation} it {what} at {had}, and nothing has taken anything from its disk."
    )
    shown = cite(before, f"node {before.node}'s log {what} at {had}", before.end_sequence)
    return Conclusion(finding, why, (shown, cite(after, f"node {after.node}'s log {what} at {found}")))


def _found(first: StateInterval) -> int | None:
    """Where the log ended that a life has found, by its first row about it; None: the row does not have it."""
    if first.kind == "state":
        return first.first_log_end
    shown = detail(first).get("from_offset") if first.kind == "truncation" else None
    return shown if isinstance(shown, int) else None


def _is_excused(journal: FaultJournal, before: StateInterval, after: StateInterval) -> bool:
    return "offline" in (before.role, after.role) or any(_may_rob(fault, before, after) for fault in journal.faults)


def _may_rob(fault: Row, before: StateInterval, after: StateInterval) -> bool:
    """Whether a fault may have taken from the node's disk what the life before had in its log."""
    if node_name(NodeId(after.node)) not in fault["nodes"]:
        return False
    disk = traits_of(fault["kind"]).disk
    since_ns = 0 if disk in _LASTING else before.end_ns
    healed_ns = None if disk in _LASTING else fault["healed_ns"]
    return disk is not DiskEffect.NOTHING and in_force(fault["injected_ns"], healed_ns, since_ns, after.begin_ns)


def _led_to_the_last(decided: Sequence[StateInterval], before: StateInterval, after: StateInterval) -> bool:
    """Whether it led, and the controller elected no other broker before it was up again."""
    elected = [one for one in decided if one.begin_ns <= after.begin_ns and one.kind == "election"]
    last = max((one.leader_epoch or 0 for one in elected), default=None)
    return before.role == "leader" and last is not None and last <= (before.leader_epoch or 0)
