"""Which losses are documented because machines lost data that they had not flushed.

Kafka's replication assumes that fewer than ``min.insync.replicas`` replicas fail *lossily* (power cut, disk swapped) at
a time, and promises what is committed only as long as one in-sync replica survives; with its default of never flushing,
a record that only page caches hold is gone when every in-sync machine loses power. So a loss is DOCUMENTED when at one
time at least that many of the replicas on which an acknowledgement relied were down by such a failure, or were back and
had been in no ISR since, and so was **the whole ISR** of that time. One member of it that was not down makes it a
violation: it had the record, and should have been elected. A replica that had left the ISR before may have the record
as well, but only KIP-966 elects it, and where fewer than ``min.insync.replicas`` fail.

An acknowledgement relies on the replicas that were in the ISR when the record was acknowledged or committed, or at any
time since, by the rows of the controller or of a leader. Replication exists to survive the failure of **one** of them,
and with a minimum of one it would always be an excuse: so a single failure excuses only where no other replica was
relied on. The ISR at one time is the controller's, where it has rows, because it elects no other replica. Where no row
names an ISR, every replica counts.

Power losses excuse nothing where the configuration flushes every write (``log.flush.interval.messages=1``).

A log directory that fails and comes back as a new, empty disk is such a failure where a broker has no other directory:
with several, the directory of the replica is not known.

Which brokers hold the groups' own topic is not known, so a group's lost commit needs all brokers to have been down.
Where only some were, and these are members of every ISR that is known, the finding is indeterminate: the others may
have no copy, or one that is out of sync.

A marker is written at some time after its transaction's records, which no row gives: the replicas that were in the ISR
when the failures came must have been down, some time between the send and the marker that closes the record in its
place, or the consumer that was given it. The coordinator, which would write the marker again, may have lost its own
log, too; which brokers hold that is not known.

Replicas that disagree are never excused: whatever was lost, the remaining logs must become the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType

from checkers.views.configured import Configured
from checkers.views.copies import robs
from checkers.views.fault_journal import FaultJournal
from checkers.views.row import Row
from checkers.views.sampled_timelines import LOOK_NS
from checkers.views.states import States
from faults import traits_of
from harness.anomaly import AnomalyKind, CauseAt, LossyFailure
from harness.downtime import in_force
from harness.facts import StateInterval
from harness.fault import DiskEffect
from harness.findings import POLL_NS, Finding
from harness.history.run_directory import Manifest
from harness.model import CONTROLLER_ID, TopicPartition

LOSSY = frozenset({DiskEffect.UNFLUSHED, DiskEffect.EVERYTHING})
"""What a fault must take from a disk for records that were committed to be gone."""

_LEADS = ("state", "leader")

_COPIES = 3
"""How many copies there are where nothing states it."""


def may_excuse(finding: Finding, kind: AnomalyKind) -> bool:
    """Whether lossy failures can explain ``finding``, which is of ``kind``, or what it follows from."""
    excuses = kind.excuses
    if excuses.lossy_failure is LossyFailure.BEFORE_READ:
        return finding.since_ns is not None
    return excuses.lossy_failure is not LossyFailure.NEVER or excuses.with_cause


def documented(
    states: States,
    configured: Configured,
    journal: FaultJournal,
    manifest: Manifest,
    finding: Finding,
    *,
    kind: AnomalyKind,
) -> bool:
    """Whether lossy failures of all relevant replicas explain ``finding``, which is of ``kind``.

    A record must have been acknowledged, or delivered, before each of these failures was proven, or sent, in a
    transaction of unknown outcome; what a later row shows, after it was injected. A consumer that skips a record must
    have had its position before.
    """
    place, when = TopicPartition(finding.topic, finding.partition), kind.excuses.lossy_failure
    replicas = _brokers(configured) if when is LossyFailure.BETWEEN_COMMITS else _replicas(states, configured, place)
    if not replicas or finding.time_ns is None:
        return False
    lossy = _lossy(journal, manifest)
    since_ns: float = math.inf
    match when:
        case LossyFailure.BETWEEN_COMMITS:
            return finding.since_ns is not None and _all_failed(replicas, lossy, finding.since_ns, finding.time_ns)
        case LossyFailure.AFTER_KNOWN | LossyFailure.AFTER_BEGUN | LossyFailure.AFTER_POLL_BEGUN:
            begun_ns = finding.since_ns if when is LossyFailure.AFTER_BEGUN else None
            since_ns = finding.time_ns if begun_ns is None else begun_ns
            under_way_ns = POLL_NS if when is LossyFailure.AFTER_POLL_BEGUN else 0
            lossy = _between(lossy, since_ns - under_way_ns, math.inf)
        case LossyFailure.BEFORE_SEEN | LossyFailure.BETWEEN_POLLS:
            since_ns = _committed_ns(states, place, _lowest_missing(finding, kind))
            before_ns = finding.since_ns if when is LossyFailure.BETWEEN_POLLS else None
            lossy = _between(lossy, before_ns or 0, finding.time_ns)
        case LossyFailure.BEFORE_READ | LossyFailure.BEFORE_MARKER if finding.since_ns is not None:
            lossy = _between(lossy, finding.since_ns, _until_ns(states, finding, kind))
        case _:
            return False
    least = _least(configured, place, replicas)
    for at_ns in sorted({fault["injected_ns"] for fault in lossy}):
        gone = {node for node in replicas if _is_gone(states, place, node, lossy, at_ns)}
        relied_on = _relied_on(states, place, min(since_ns, at_ns), at_ns) or replicas
        failed = relied_on & gone
        needed = relied_on if len(failed) == 1 else _in_sync(states, place, at_ns, at_ns) or replicas
        if len(failed) >= least and needed <= gone:
            return True
    return False


def _brokers(configured: Configured) -> set[int]:
    """Every broker, for any of them may hold the groups' own topic; empty: the configuration does not name them."""
    return set() if configured.wanted is None else set(configured.wanted.nodes) - {CONTROLLER_ID}


def _all_failed(nodes: set[int], lossy: Sequence[Row], since_ns: int, until_ns: int) -> bool:
    """Whether all of them were down by such failures at one time in between."""
    between = _between(lossy, since_ns, until_ns)
    times = sorted({fault["injected_ns"] for fault in between})
    return any(all(_is_down(str(node), between, at_ns) for node in nodes) for at_ns in times)


def is_unknown(
    states: States,
    configured: Configured,
    journal: FaultJournal,
    manifest: Manifest,
    finding: Finding,
    *,
    kind: AnomalyKind,
) -> bool:
    """Whether lossy failures may have taken every in-sync copy of what one of Kafka's internal topics held.

    Which brokers have copies of it, and which of these are in sync, is not recorded: any broker that is in the ISR of
    some partition is taken to be in sync, where it has a copy.
    """
    brokers, setting = _brokers(configured), kind.excuses.own_topic
    if setting is None or finding.since_ns is None or not brokers:
        return False
    copies = min(_number(manifest, setting) or _COPIES, len(brokers))
    lossy = _between(_lossy(journal, manifest), finding.since_ns, _until_ns(states, finding, kind))
    for at_ns in {fault["injected_ns"] for fault in lossy}:
        down = {node for node in brokers if _is_down(str(node), lossy, at_ns)}
        in_sync = {
            node for place in {*states.decided, *states.reported} for node in _relied_on(states, place, at_ns, at_ns)
        }
        if down and len(down | (brokers - in_sync)) >= copies:
            return True
    return False


def _lossy(journal: FaultJournal, manifest: Manifest) -> list[Row]:
    return [fault for fault in journal.excusing if _is_lossy(fault, manifest) and fault["proven_ns"] is not None]


def _between(lossy: Sequence[Row], since_ns: float, until_ns: float) -> list[Row]:
    return [fault for fault in lossy if fault["proven_ns"] >= since_ns and fault["injected_ns"] <= until_ns]


def _until_ns(states: States, finding: Finding, kind: AnomalyKind) -> float:
    """By when what explains a finding must have begun: when it was seen, or the wrong marker was written."""
    if kind.excuses.lossy_failure is not LossyFailure.BEFORE_MARKER:
        return math.inf if finding.time_ns is None else finding.time_ns
    place, offset = TopicPartition(finding.topic, finding.partition), finding.other_offset
    if offset is None:
        return math.inf
    led = [
        one
        for intervals in states.reported.get(place, {}).values()
        for one in intervals
        if (one.kind, one.role) == _LEADS
    ]
    until_ns = math.inf
    for one in sorted(led, key=lambda one: (one.leader_epoch or 0, one.begin_ns)):
        if (one.first_log_end or 0) > offset:
            until_ns = min(until_ns, one.begin_ns)
        else:
            until_ns = one.end_ns if (one.log_end_offset or 0) > offset else math.inf
    return until_ns + (LOOK_NS if states.sampled else 0)


def _replicas(states: States, configured: Configured, place: TopicPartition) -> set[int]:
    """The nodes that hold the partition, by the configuration or by how they ended; empty: not all are known.

    The configuration does not name Kafka's own topics, and those that a workload has made for itself. How replicas of a
    compacted log ended is not recorded; they are those that reported of it.
    """
    if configured.wanted is None:
        return set()
    demanded = configured.wanted.partitions.get(place)
    if demanded is None:
        return set(states.ended.get(place, ())) or set(states.reported.get(place, ()))
    found = set(states.ended.get(place, ()) if demanded.nodes is None else demanded.nodes)
    return found if len(found) >= demanded.number else set()


def _least(configured: Configured, place: TopicPartition, replicas: set[int]) -> int:
    """The smallest ISR in which acks=all is acknowledged; where that is not known, all replicas."""
    known = configured.least_isr(place)
    if known is None and configured.wanted is not None and place not in configured.wanted.partitions:
        stated = configured.guarantees.get("min_insync_replicas")
        known = min(stated, len(replicas)) if isinstance(stated, int) else None
    return known or len(replicas)


def _lowest_missing(finding: Finding, kind: AnomalyKind) -> int:
    """The lowest offset that a row misses which was written afterwards: a consumer's position, or what is gone."""
    polled = kind.cause_at is CauseAt.STEP_BACK or kind.excuses.lossy_failure is LossyFailure.BETWEEN_POLLS
    lowest = finding.other_offset if polled else finding.offset
    return lowest or 0


def _committed_ns(states: States, place: TopicPartition, offset: int) -> int:
    """When a leader first reported that it had committed the offset; 0: none did."""
    led = [one for intervals in states.reported.get(place, {}).values() for one in intervals if one.role == "leader"]
    passed = [one for one in led if (one.high_watermark or 0) > offset]
    return min((x.begin_ns if (x.first_high_watermark or 0) > offset else x.end_ns for x in passed), default=0)


def _in_sync(states: States, place: TopicPartition, since_ns: int, until_ns: int) -> set[int]:
    """The members of the ISR at any time in between, by the controller's rows, or else a leader's; empty: unknown."""
    decided = states.decided.get(place, [])
    return _members([decided], since_ns, until_ns) or _relied_on(states, place, since_ns, until_ns)


def _relied_on(states: States, place: TopicPartition, since_ns: float, until_ns: int) -> set[int]:
    """The members of the ISR at any time in between, by rows of the controller or of a leader; empty: unknown.

    A leader acknowledges nothing more once a later epoch has a leader, whether it has heard of that or not.
    """
    reported = states.reported.get(place, {}).values()
    took: dict[int, int] = {}
    for one in (x for intervals in reported for x in intervals if (x.kind, x.role) == _LEADS):
        took[one.leader_epoch or 0] = min(one.begin_ns, took.get(one.leader_epoch or 0, one.begin_ns))
    return _members([states.decided.get(place, []), *reported], since_ns, until_ns, took)


def _members(
    chains: Iterable[Sequence[StateInterval]],
    since_ns: float,
    until_ns: int,
    took: Mapping[int, int] = MappingProxyType({}),
) -> set[int]:
    """Every member of an ISR that a row had in force in between; ``took``: when each epoch's leader began."""
    found: set[int] = set()
    for chain in chains:
        for one, after in zip_longest(chain, chain[1:]):
            stood = one.begin_ns <= until_ns and (after is None or after.begin_ns > since_ns)
            if one.role == "leader":
                stood &= all(at_ns > since_ns for epoch, at_ns in took.items() if epoch > (one.leader_epoch or 0))
            if stood and (one.role == "leader" or one.kind in ("election", "isr")):
                found.update(one.isr or ())
    return found


def _is_lossy(fault: Row, manifest: Manifest) -> bool:
    if traits_of(fault["kind"]).disk is DiskEffect.UNFLUSHED and _number(manifest, "log.flush.interval.messages") == 1:
        return False
    one_directory = _number(manifest, "log.dirs.count", 1) == 1
    return robs(fault, LOSSY) and (traits_of(fault["kind"]).disk is not DiskEffect.DIRECTORY or one_directory)


def _is_gone(states: States, place: TopicPartition, node: int, lossy: Sequence[Row], time_ns: int) -> bool:
    """Whether one of these failures had ``node`` down at that time, or it was back and had been in no ISR since."""
    if _is_down(str(node), lossy, time_ns):
        return True
    back = [fault["healed_ns"] for fault in lossy if str(node) in fault["nodes"] and fault["injected_ns"] <= time_ns]
    return any((since := _in_sync(states, place, at_ns, time_ns)) and node not in since for at_ns in back)


def _is_down(node: str, lossy: Sequence[Row], time_ns: int) -> bool:
    """Whether one of these failures had ``node`` down at that time; see :mod:`harness.downtime`."""
    return any(
        node in fault["nodes"] and in_force(fault["injected_ns"], fault["healed_ns"], time_ns, time_ns)
        for fault in lossy
    )


def _number(manifest: Manifest, setting: str, default: int | None = None) -> int | None:
    """A setting in force, which of real Kafka is the text that it was given."""
    written = str(manifest.configuration.get("settings", {}).get(setting, ""))
    return int(written) if written.isdecimal() else default
