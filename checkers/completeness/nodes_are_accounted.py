"""Every node, replica and fault that the configuration names has left its evidence.

* Every node has a timeline of each of its incarnations, from 0 to its last, and a restart that a fault caused began
  one. Its sequence runs from 0 without a gap up to the ``final`` rows that follow it. Each incarnation has at least
  one of these, that of a node which was killed, too: without it the last rows may be missing.
* Every replica of every configured partition has a ``final`` row with both bounds, and its log holds exactly the
  offsets from its start to its end, once each: no log is compacted, and without retention
  (``guarantees.retention``) every log starts at 0. What was deleted before its start may still be there, once each.
* In a sampled timeline only the controller's rows are without a gap, and every node has at least one row.
* No other nodes than those of the configuration have rows.
* Every fault that the schedule names, or that chaos injects at least, is in the table, once, names its nodes, has what
  its probes saw, and was aimed, injected, proven, healed and proven healed in this order, while the timeline has rows.

A gap makes the run ``INVALID``. A replica without a final row, a configured partition that no client used, and one that
clients used although it is not configured, so that its replicas are not known, only make it ``INCONCLUSIVE``. A leader
that does not name its ISR is no gap, but one of the verdict's ``limits``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from checkers.views.copies import robs
from checkers.views.expected import Expected, Replicas
from checkers.views.row import Row
from faults import traits_of
from harness.anomaly import Kinds, Needs
from harness.facts import ClientFacts, StateInterval
from harness.fault import ProcessEffect
from harness.findings import NodeLife, PartitionEnd, ReplicaEnd
from harness.model import CONTROLLER_ID, NodeId, TopicPartition, is_kafkas_own, node_name

_NAMED = 3
"""How many of the missing faults a sentence names."""

_SLACK_NS = 1_000_000_000
"""By how much actions of clients and faults may lie outside of the time of the nodes' rows."""

_ORDER = ("aimed_ns", "injected_ns", "proven_ns", "healed_ns", "heal_proven_ns")


def broken_lives(lives: Sequence[NodeLife], *, sampled: bool = False) -> Iterator[str]:
    """One sentence for each incarnation whose timeline has a gap, or may have one at its end."""
    for life in lives:
        whose = f"The timeline of node {life.node} (incarnation {life.incarnation})"
        if not life.rows:
            yield f"{whose} has only final rows, and none of its start."
        elif not life.rows == life.sequences == life.expected:
            found = life.rows if life.rows != life.expected else life.sequences
            yield f"{whose} has {found} rows where its last one says {life.expected}."
        elif life.final_sequence is None and not sampled:
            yield f"{whose} has no final row, so rows may be missing at its end."
        elif life.final_sequence is not None and life.final_sequence > life.expected:
            yield f"{whose} has {life.rows} rows where its final rows say {life.final_sequence}."


def broken_samples(lives: Sequence[NodeLife]) -> Iterator[str]:
    """As :func:`broken_lives` of a sampled timeline, where only the controller's rows are complete."""
    return broken_lives([life for life in lives if life.node == CONTROLLER_ID and life.rows], sampled=True)


def nowhere(lives: Sequence[NodeLife], wanted: Expected) -> Iterator[str]:
    """One sentence for each node without a row while it ran, in a sampled timeline."""
    for node in wanted.nodes:
        if not any(life.node == node and life.rows for life in lives):
            yield f"Node {node} was never looked at: there is no row about it while it ran."


def missing_lives(lives: Sequence[NodeLife], faults: Sequence[Row], wanted: Expected) -> Iterator[str]:
    """One sentence for each incarnation, or row of them, without any row."""
    restarts = Counter(
        node
        for f in faults
        if traits_of(f["kind"]).process is ProcessEffect.ENDS and f["heal_proven_ns"]
        for node in f["nodes"]
    )
    for node in sorted({*wanted.nodes, *(life.node for life in lives)}):
        known = {life.incarnation for life in lives if life.node == node}
        least = 1 + restarts[node_name(NodeId(node))]
        end = max(least, max(known, default=0) + 1)
        for before, after in pairwise([-1, *sorted(known), end]):
            if after - before == 2:
                yield f"Node {node} has no timeline of its incarnation {after - 1}."
            elif after - before > 2:
                yield f"Node {node} has no timeline of its incarnations {before + 1} to {after - 1}."


def unnamed_isrs(intervals: Iterable[StateInterval], kinds: Kinds) -> Iterator[str]:
    """A sentence about leaders, or a controller, whose rows name no ISR, and the kinds that are not judged for it."""
    if places := silent_isrs(intervals):
        unjudged = sorted(kind.name for kind in kinds.values() if Needs.ISR in kind.relies_on)
        yield (
            f"Leaders, or the controller, have rows about {', '.join(map(str, places))} that name no ISR, so there "
            f"these were not judged: {', '.join(unjudged)}."
        )


def silent_isrs(intervals: Iterable[StateInterval]) -> list[TopicPartition]:
    """The partitions of which a leader, or the controller, has a row that names no ISR."""
    decided = ("election", "isr")
    silent = [x for x in intervals if x.isr is None and (x.kind in decided or (x.kind, x.role) == ("state", "leader"))]
    return sorted({TopicPartition(x.topic, x.partition or 0) for x in silent if x.topic is not None})


def broken_logs(replicas: Sequence[ReplicaEnd], wanted: Expected) -> Iterator[str]:
    """One sentence for each replica whose log does not hold what it should."""
    for replica in replicas:
        if replica.log_end_offset is None or replica.node == CONTROLLER_ID:
            continue
        start = (replica.log_start_offset or 0) if wanted.retention else 0
        # What has been deleted may lie on the disk for a while yet.
        start = start if replica.first is None else min(start, replica.first)
        end = replica.log_end_offset
        held = (replica.records, replica.offsets)
        if held != (end - start, end - start) or (end > start and (replica.first, replica.last) != (start, end - 1)):
            name = TopicPartition(replica.topic, replica.partition)
            holds = f"{replica.offsets} offsets"
            if replica.offsets:
                holds += f", {replica.first} to {replica.last}"
            yield (
                f"The log of {name} on node {replica.node} has {replica.records} records at {holds}, "
                f"where it should have every offset from {start} to {end} (exclusive) once."
            )


def strangers(lives: Sequence[NodeLife], replicas: Sequence[ReplicaEnd], wanted: Expected) -> Iterator[str]:
    """One sentence for each node with rows that the configuration does not have.

    Controllers of a quorum, whose number the configuration may leave open, hold nothing but the metadata log.
    """
    if not wanted.brokers:
        return
    for node in sorted({life.node for life in lives if life.node < CONTROLLER_ID} - {*wanted.nodes}):
        yield f"The timeline has rows of node {node}, and the configuration has no such node."
    logs = {(x.node, TopicPartition(x.topic, x.partition)) for x in replicas if x.records}
    for node, name in sorted(logs):
        if node not in wanted.nodes if node < CONTROLLER_ID else not is_kafkas_own(name.topic):
            yield f"There is a log of {name} on node {node}, and the configuration has no such broker."


def open_replicas(replicas: Sequence[ReplicaEnd], wanted: Expected) -> Iterator[str]:
    """One sentence for each replica without a final row that has both bounds."""
    known: dict[TopicPartition, set[int]] = {}
    for replica in replicas:
        if replica.high_watermark is not None and replica.log_end_offset is not None:
            known.setdefault(TopicPartition(replica.topic, replica.partition), set()).add(replica.node)
    for name, demanded in wanted.partitions.items() if wanted.disks else ():
        missing = _missing(demanded, known.get(name, set()))
        if missing:
            yield f"How {name} ended on {missing} is not known: there is no final row with both bounds."


def uneven_replicas(replicas: Sequence[ReplicaEnd]) -> Iterator[str]:
    """One sentence for each partition whose replicas were not all found committed up to one and the same end.

    Where nothing but their disks was seen, a replica that lacks the last records is known by nothing else.
    """
    found: dict[TopicPartition, list[ReplicaEnd]] = {}
    for replica in replicas:
        if replica.log_end_offset is not None:
            found.setdefault(TopicPartition(replica.topic, replica.partition), []).append(replica)
    for name, ends in found.items():
        if len({offset for end in ends for offset in (end.log_end_offset, end.high_watermark)}) > 1:
            each = (f"{x.log_end_offset} on node {x.node} (high watermark {x.high_watermark})" for x in ends)
            yield f"The logs of {name} end at {', '.join(each)} on disk: what is behind the least was not compared."


def _missing(demanded: Replicas, known: set[int]) -> str:
    if demanded.nodes is None:
        lacking = demanded.number - len(known)
        return f"{lacking} of its {demanded.number} replicas" if lacking > 0 else ""
    nodes = [str(node) for node in demanded.nodes if node not in known]
    return f"node {', '.join(nodes)}" if nodes else ""


def unused_partitions(ends: Sequence[PartitionEnd], wanted: Expected) -> Iterator[str]:
    """One sentence for each configured partition that the history does not name."""
    used = {TopicPartition(end.topic, end.partition) for end in ends}
    for name in wanted.partitions:
        if name not in used:
            yield f"{name} is configured, and the history does not name it: nothing is known about it."


def unplanned_partitions(ends: Sequence[PartitionEnd], wanted: Expected) -> Iterator[str]:
    """One sentence for each partition that the history names and the configuration does not."""
    for end in ends if wanted.brokers else ():
        name = TopicPartition(end.topic, end.partition)
        if name not in wanted.partitions:
            yield f"{name} was used and is not configured, so which replicas should hold it is not known."


def missing_faults(faults: Sequence[Row], wanted: Expected) -> Iterator[str]:
    """A sentence about the faults that should have been injected and are not in the table; of a long run hundreds."""
    known = {fault["fault"] for fault in faults}
    missing = [repr(name) for name in wanted.faults if name not in known]
    if len(missing) == 1:
        yield f"Fault {missing[0]} is not among the {len(faults)} faults, and the scenario injects it."
    elif missing:
        yield f"Faults {_few(missing)} are not among the {len(faults)} faults, and the scenario injects them."


def _few(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    others = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {others} more" if others > 0 else "")


def unproven_faults(faults: Sequence[Row]) -> Iterator[str]:
    """One sentence for each fault that was not proven, or whose row contradicts itself."""
    for name, times in Counter(fault["fault"] for fault in faults).items():
        if times > 1:
            yield f"Fault {name!r} is in the table {times} times, and each fault has a name of its own."
    for fault in faults:
        yield from _unproven(fault)


def out_of_time(faults: Sequence[Row], intervals: Sequence[StateInterval], clients: ClientFacts) -> list[str]:
    """One sentence for the faults, and one for what clients saw, at times at which a whole timeline has no rows."""
    if not intervals:
        return []
    begin_ns = min(one.begin_ns for one in intervals) - _SLACK_NS
    end_ns = max(one.end_ns for one in intervals) + _SLACK_NS
    strange = [
        repr(fault["fault"])
        for fault in faults
        if not all(begin_ns <= fault[name] <= end_ns for name in _ORDER if fault[name] is not None)
    ]
    late = any(one.time_ns > end_ns for one in clients.first_acks)
    early = any(one.begin_ns < begin_ns for one in clients.silences)
    strays = {f"fault {_few(strange)} began or ended": bool(strange), "clients sent records": late or early}
    return [f"The timeline has no rows any more, or not yet, when {what}." for what, is_so in strays.items() if is_so]


def unproven_losses(faults: Sequence[Row]) -> list[Row]:
    """The faults that may have taken data from a disk, and whose effect is not proven."""
    return [f for f in faults if robs(f) and f["injected_ns"] is not None and f["proven_ns"] is None]


def _unproven(fault: Row) -> Iterator[str]:
    name = f"Fault {fault['fault']!r} ({fault['kind']} of {', '.join(fault['nodes']) or 'no node'})"
    if fault["injected_ns"] is None:
        yield f"{name} was never injected."
    elif fault["proven_ns"] is None:
        yield f"{name} was never proven to be in effect."
    elif fault["healed_ns"] is None:
        yield f"{name} was never healed."
    elif fault["heal_proven_ns"] is None:
        yield f"The healing of {name[0].lower()}{name[1:]} was never proven."
    elif not fault["proof"] or not fault["heal_proof"]:
        yield f"{name} is said to be proven, and not what the probe saw."
    elif not fault["nodes"]:
        yield f"{name} was aimed at nothing."
    else:
        for before, after in pairwise(_ORDER):
            if fault[before] > fault[after]:
                yield f"{name} has its {before} after its {after}."
