"""What a loss may be put down to when machines lost what they had not flushed.

Kafka's replication assumes that fewer than ``min.insync.replicas`` replicas fail *lossily* (power cut, disk swapped) at
a time, and promises what is committed only as long as one replica in sync lives on; with its default of never flushing,
a record that only page caches hold is gone when every machine that is in sync loses power. So what was lost is
DOCUMENTED when at one time at least that many of those whom an acknowledgement relied on were down by such a failure,
or were back and had been in no ISR since, and so was **the whole ISR** of that time. One of it that was not down is
enough to make it a violation: it had the record, and had to be asked for it. Who had left the ISR before may have the
record as well, but is asked by KIP-966 alone, and where fewer than ``min.insync.replicas`` fail.

An acknowledgement relies on who was in the ISR when the record was acknowledged or committed, or at any time since, by
the words of the controller or of a leader. To survive the failure of **one** of them is what replication is for, and a
minimum of one would excuse it always: so a single one is an excuse only where nobody else was relied on. Who is in the
ISR at one time the controller says, where it says anything, for nobody else is elected. Where nobody says who was in
the ISR, every replica counts.

Of power losses nothing is excused where the configuration flushes every write (``log.flush.interval.messages=1``).

A log directory that fails and comes back as a new, empty disk is such a failure where a broker has no other directory:
with several, nobody knows in which of them the replica was.

Of a group's commit nobody knows which brokers hold the groups' own topic, so all of them must have been down. Where a
failure of those that were may have taken every copy in sync nobody knows: the others may have none, or one that is out
of sync, as they are in no ISR that anybody names.

A marker is written at some time after its transaction's records, and nothing says when, nor that it is there: who was
in the ISR when the failures came must have been down, some time between the send and the marker that closes the record
in its place, or the consumer that was given it. The coordinator, which would write it again, may have lost what it had
written down, too, and nobody knows which brokers hold that.

Replicas that disagree are never excused: whatever was lost, what is left must become the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType

from checkers.conclusion import RunFacts
from checkers.copies import robs
from checkers.row import Row
from checkers.sampled_timelines import LOOK_NS
from faults import traits_of
from harness.anomaly import AnomalyKind, CauseAt, LossyFailure
from harness.downtime import in_force
from harness.facts import Stretch
from harness.fault import DiskEffect
from harness.findings import Finding
from harness.history import Manifest
from harness.model import CONTROLLER_ID, TopicPartition

LOSSY = frozenset({DiskEffect.UNFLUSHED, DiskEffect.EVERYTHING})
"""What a fault must take from a disk for records that were committed to be gone."""

_LEADS = ("state", "leader")

_COPIES = 3
"""How many there are where nothing says so."""


def may_excuse(finding: Finding, kind: AnomalyKind) -> bool:
    """Whether lossy failures can explain ``finding``, which is of ``kind``, or what it follows from."""
    excuses = kind.excuses
    if excuses.lossy_failure is LossyFailure.BEFORE_READ:
        return finding.since_ns is not None
    return excuses.lossy_failure is not LossyFailure.NEVER or excuses.with_cause


def documented(run: RunFacts, manifest: Manifest, finding: Finding, kind: AnomalyKind) -> bool:
    """Whether lossy failures of all that mattered explain ``finding``, which is of ``kind``.

    A record must have been acknowledged, or delivered, before each of these failures was proven, and of a transaction
    of which nobody knows how it ended have been sent; what a later row shows, after it was injected. A consumer that
    skips a record had its position before, which is of no use afterwards.
    """
    place, when = TopicPartition(finding.topic, finding.partition), kind.excuses.lossy_failure
    replicas = _brokers(run) if when is LossyFailure.BETWEEN_COMMITS else _replicas(run, place)
    if not replicas or finding.time_ns is None:
        return False
    lossy = _lossy(run, manifest)
    since_ns: float = math.inf
    match when:
        case LossyFailure.BETWEEN_COMMITS:
            return finding.since_ns is not None and _all_failed(replicas, lossy, finding.since_ns, finding.time_ns)
        case LossyFailure.AFTER_KNOWN | LossyFailure.AFTER_BEGUN:
            begun_ns = finding.since_ns if when is LossyFailure.AFTER_BEGUN else None
            since_ns = finding.time_ns if begun_ns is None else begun_ns
            lossy = _between(lossy, since_ns, math.inf)
        case LossyFailure.BEFORE_SEEN | LossyFailure.BETWEEN_POLLS:
            since_ns = _committed_ns(run, place, _lowest_missing(finding, kind))
            before_ns = finding.since_ns if when is LossyFailure.BETWEEN_POLLS else None
            lossy = _between(lossy, before_ns or 0, finding.time_ns)
        case LossyFailure.BEFORE_READ | LossyFailure.BEFORE_MARKER if finding.since_ns is not None:
            lossy = _between(lossy, finding.since_ns, _until_ns(run, finding, kind))
        case _:
            return False
    least = run.least_isr(place) or len(replicas)
    for at_ns in sorted({fault["injected_ns"] for fault in lossy}):
        gone = {node for node in replicas if _is_gone(run, place, node, lossy, at_ns)}
        relied_on = _relied_on(run, place, min(since_ns, at_ns), at_ns) or replicas
        failed = relied_on & gone
        needed = relied_on if len(failed) == 1 else _in_sync(run, place, at_ns, at_ns) or replicas
        if len(failed) >= least and needed <= gone:
            return True
    return False


def _brokers(run: RunFacts) -> set[int]:
    """Every broker, for any of them may hold the groups' own topic; empty: the configuration does not say."""
    return set() if run.wanted is None else set(run.wanted.nodes) - {CONTROLLER_ID}


def _all_failed(nodes: set[int], lossy: Sequence[Row], since_ns: int, until_ns: int) -> bool:
    """Whether all of them were down by such failures at one time in between."""
    between = _between(lossy, since_ns, until_ns)
    times = sorted({fault["injected_ns"] for fault in between})
    return any(all(_is_down(str(node), between, at_ns) for node in nodes) for at_ns in times)


def is_unknown(run: RunFacts, manifest: Manifest, finding: Finding, kind: AnomalyKind) -> bool:
    """Whether lossy failures may have taken every copy in sync of what a topic of Kafka's own held.

    Nobody says which brokers have copies of it, and which of these are in sync: but those that are in an ISR of some
    partition are taken to be, where they have one.
    """
    brokers, setting = _brokers(run), kind.excuses.own_topic
    if setting is None or finding.since_ns is None or not brokers:
        return False
    copies = min(_number(manifest, setting) or _COPIES, len(brokers))
    lossy = _between(_lossy(run, manifest), finding.since_ns, _until_ns(run, finding, kind))
    for at_ns in {fault["injected_ns"] for fault in lossy}:
        down = {node for node in brokers if _is_down(str(node), lossy, at_ns)}
        in_sync = {node for place in {*run.decided, *run.told} for node in _relied_on(run, place, at_ns, at_ns)}
        if down and len(down | (brokers - in_sync)) >= copies:
            return True
    return False


def _lossy(run: RunFacts, manifest: Manifest) -> list[Row]:
    return [fault for fault in run.excusing if _is_lossy(fault, manifest) and fault["proven_ns"] is not None]


def _between(lossy: Sequence[Row], since_ns: float, until_ns: float) -> list[Row]:
    return [fault for fault in lossy if fault["proven_ns"] >= since_ns and fault["injected_ns"] <= until_ns]


def _until_ns(run: RunFacts, finding: Finding, kind: AnomalyKind) -> float:
    """By when what explains a finding must have begun: when it was seen, or the wrong marker was written."""
    if kind.excuses.lossy_failure is not LossyFailure.BEFORE_MARKER:
        return math.inf if finding.time_ns is None else finding.time_ns
    place, offset = TopicPartition(finding.topic, finding.partition), finding.other_offset
    if offset is None:
        return math.inf
    led = [one for ours in run.told.get(place, {}).values() for one in ours if (one.kind, one.role) == _LEADS]
    until_ns = math.inf
    for one in sorted(led, key=lambda one: (one.leader_epoch or 0, one.begin_ns)):
        if (one.first_log_end or 0) > offset:
            until_ns = min(until_ns, one.begin_ns)
        else:
            until_ns = one.end_ns if (one.log_end_offset or 0) > offset else math.inf
    return until_ns + (LOOK_NS if run.sampled else 0)


def _replicas(run: RunFacts, place: TopicPartition) -> set[int]:
    """The nodes that hold the partition, by the configuration or by how they ended; empty: nobody knows all of them."""
    demanded = None if run.wanted is None else run.wanted.partitions.get(place)
    if demanded is None:
        return set()
    found = set(run.ended.get(place, ()) if demanded.nodes is None else demanded.nodes)
    return found if len(found) >= demanded.number else set()


def _lowest_missing(finding: Finding, kind: AnomalyKind) -> int:
    """A record that a row which was written afterwards misses: where a consumer had been, or the first that is gone."""
    polled = kind.cause_at is CauseAt.STEP_BACK or kind.excuses.lossy_failure is LossyFailure.BETWEEN_POLLS
    lowest = finding.other_offset if polled else finding.offset
    return lowest or 0


def _committed_ns(run: RunFacts, place: TopicPartition, offset: int) -> int:
    """When a leader first said that it had committed the offset; 0: nobody did."""
    led = [one for ours in run.told.get(place, {}).values() for one in ours if one.role == "leader"]
    passed = [one for one in led if (one.high_watermark or 0) > offset]
    return min((x.begin_ns if (x.first_high_watermark or 0) > offset else x.end_ns for x in passed), default=0)


def _in_sync(run: RunFacts, place: TopicPartition, since_ns: int, until_ns: int) -> set[int]:
    """Who was in the ISR at any time in between: by the controller's words, or else a leader's; empty: nobody says."""
    decided = run.decided.get(place, [])
    return _said([decided], since_ns, until_ns) or _relied_on(run, place, since_ns, until_ns)


def _relied_on(run: RunFacts, place: TopicPartition, since_ns: float, until_ns: int) -> set[int]:
    """Who was in the ISR at any time in between, by the words of the controller or of a leader; empty: nobody says.

    Nothing more is acknowledged by a leader once somebody leads in a later epoch, whether it has heard of that or not.
    """
    told = run.told.get(place, {}).values()
    took: dict[int, int] = {}
    for one in (x for ours in told for x in ours if (x.kind, x.role) == _LEADS):
        took[one.leader_epoch or 0] = min(one.begin_ns, took.get(one.leader_epoch or 0, one.begin_ns))
    return _said([run.decided.get(place, []), *told], since_ns, until_ns, took)


def _said(
    chains: Iterable[Sequence[Stretch]], since_ns: float, until_ns: int, took: Mapping[int, int] = MappingProxyType({})
) -> set[int]:
    """Every member of an ISR that one of these told of in between; ``took``: when each epoch's leader took office."""
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


def _is_gone(run: RunFacts, place: TopicPartition, node: int, lossy: Sequence[Row], time_ns: int) -> bool:
    """Whether one of these failures had ``node`` down at that time, or it was back and had been in no ISR since."""
    if _is_down(str(node), lossy, time_ns):
        return True
    back = [fault["healed_ns"] for fault in lossy if str(node) in fault["nodes"] and fault["injected_ns"] <= time_ns]
    return any((since := _in_sync(run, place, at_ns, time_ns)) and node not in since for at_ns in back)


def _is_down(node: str, lossy: Sequence[Row], time_ns: int) -> bool:
    """Whether one of these failures had ``node`` down at that time; see :mod:`harness.downtime`."""
    return any(
        node in fault["nodes"] and in_force(fault["injected_ns"], fault["healed_ns"], time_ns, time_ns)
        for fault in lossy
    )


def _number(manifest: Manifest, setting: str, default: int | None = None) -> int | None:
    """A setting in force, which of real Kafka is the text that it was given."""
    said = str(manifest.configuration.get("settings", {}).get(setting, ""))
    return int(said) if said.isdecimal() else default
