"""Looking at the cluster, and saying what is not yet as it should be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.model import NodeId, Offset, TopicPartition, node_name
from harness.steps import ReplicaState, Until
from harness.target import ClusterView, PartitionView, Target

_REPLICA_FIELDS = ("role", "leader", "leader_epoch", "log_end_offset", "high_watermark")


def unmet(
    until: Until, target: Target, partitions: Sequence[TopicPartition], polled: Mapping[TopicPartition, Offset]
) -> list[str]:
    """What ``until`` asks for and is not so now, one phrase each; ``sent`` is none of this module's business.

    ``polled`` is up to where, exclusive, the consumers have read.
    """
    meant = [name for name in partitions if until.topic in (None, name.topic)]
    meant = [name for name in meant if until.partition in (None, name.partition)]
    phrases = list(_unmet_view(until, target.view(), meant)) if _asks_the_controller(until) else []
    for name in meant:
        if until.polled is not None and polled.get(name, 0) < until.polled:
            phrases.append(f"{name}: polled to {polled.get(name, 0)}, not {until.polled}")
        for wanted in until.replicas:
            phrases += _unmet_replica(wanted, target, name)
    return phrases


def unsettled(target: Target, partitions: Sequence[TopicPartition]) -> list[str]:
    """What keeps the cluster from being whole, one phrase each.

    Whole means: every partition has a leader and its full ISR, every replica knows that leader, and on every
    replica the log ends where the leader's does and the high watermark is there, too.
    """
    view = target.view()
    return [phrase for name in partitions for phrase in _unsettled(target, name, view.partitions.get(name))]


def _asks_the_controller(until: Until) -> bool:
    return any(wanted is not None for wanted in (until.leader, until.leader_epoch, until.isr))


def _unmet_view(until: Until, view: ClusterView, meant: Sequence[TopicPartition]) -> Iterator[str]:
    for name in meant:
        seen = view.partitions.get(name)
        if seen is None:
            yield f"{name}: the controller says nothing of it"
            continue
        if until.leader not in (None, seen.leader):
            yield f"{name}: the leader is {seen.leader}, not {until.leader}"
        if until.leader_epoch not in (None, seen.leader_epoch):
            yield f"{name}: the leader epoch is {seen.leader_epoch}, not {until.leader_epoch}"
        if until.isr is not None and set(until.isr) != set(seen.isr):
            yield f"{name}: the ISR is {_listed(seen.isr)}, not {_listed(until.isr)}"


def _unmet_replica(wanted: ReplicaState, target: Target, name: TopicPartition) -> Iterator[str]:
    seen = target.replica(node_name(NodeId(wanted.node)), name)
    if seen is None:
        yield f"{name}: {target.is_running(node_name(NodeId(wanted.node))).seen}"
        return
    for field in _REPLICA_FIELDS:
        value = getattr(wanted, field)
        if value not in (None, getattr(seen, field)):
            yield f"{name}: on broker {wanted.node} {field} is {getattr(seen, field)}, not {value}"


def _unsettled(target: Target, name: TopicPartition, seen: PartitionView | None) -> Iterator[str]:
    if seen is None:
        yield f"{name}: the controller says nothing of it"
        return
    if set(seen.isr) != set(seen.replicas):
        yield f"{name}: the ISR is {_listed(seen.isr)}, not {_listed(seen.replicas)}"
        return
    leading = target.replica(node_name(seen.leader), name)
    for node in seen.replicas:
        replica = target.replica(node_name(node), name)
        if leading is None or replica is None:
            silent = seen.leader if leading is None else node
            yield f"{name}: {target.is_running(node_name(silent)).seen}"
        elif replica.leader != seen.leader:
            yield f"{name}: broker {node} takes {replica.leader} for the leader, not {seen.leader}"
        elif (replica.log_end_offset, replica.high_watermark) != (leading.log_end_offset, leading.log_end_offset):
            yield (
                f"{name}: on broker {node} the log ends at {replica.log_end_offset} with high watermark "
                f"{replica.high_watermark}, but the leader's log ends at {leading.log_end_offset}"
            )


def _listed(nodes: Sequence[int]) -> str:
    return "[" + ", ".join(map(str, nodes)) + "]"
