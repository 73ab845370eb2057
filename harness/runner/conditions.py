"""Checks conditions on the cluster: those of ``until`` steps, and whether it is whole after the faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from harness.model import NO_LEADER, NodeId, Offset, TopicPartition, node_name, partition_named
from harness.observations import CommittedOffsets, NodeStates, ReplicaStates
from harness.steps import ReplicaState, Until
from harness.target import ClusterView, PartitionView, ReplicaView, Target, supports

_REPLICA_FIELDS = ("role", "leader", "leader_epoch", "log_start_offset", "log_end_offset", "high_watermark")


def unmet(
    until: Until, target: Target, partitions: Sequence[TopicPartition], polled: Mapping[TopicPartition, Offset]
) -> list[str]:
    """The conditions of ``until`` that do not hold now, one phrase each, except ``sent``.

    ``polled`` is the exclusive end of what the consumers have read.
    """
    meant = [name for name in partitions if until.topic in (None, name.topic)]
    meant = [name for name in meant if until.partition in (None, name.partition)]
    phrases = list(_unmet_view(until, target.view(), meant)) if _asks_the_controller(until) else []
    phrases += _unmet_elsewhere(until, target)
    for name in meant:
        if until.polled is not None and polled.get(name, 0) < until.polled:
            phrases.append(f"{name}: polled to {polled.get(name, 0)}, not {until.polled}")
        for wanted in until.replicas:
            phrases += _unmet_replica(wanted, target, name)
    return phrases


def leaderless(target: Target, partitions: Sequence[TopicPartition]) -> list[str]:
    """Which of ``partitions`` have a leader, or are unknown to the controller, one phrase each."""
    view = target.view()
    phrases = []
    for name in partitions:
        seen = view.partitions.get(name)
        if seen is None:
            phrases.append(f"{name}: the controller says nothing of it")
        elif seen.leader != NO_LEADER:
            phrases.append(f"{name}: the leader is {seen.leader}")
    return phrases


def unsettled(target: Target, partitions: Sequence[TopicPartition]) -> list[str]:
    """What keeps the cluster from being whole, one phrase each.

    Whole means: every partition has a leader and a full ISR; where brokers say what they hold, every replica knows that
    leader, too, and every replica's log end offset and high watermark equal the leader's log end offset. Brokers that
    have exited by themselves do not count.
    """
    view = target.view()
    gone = set()
    if supports(target, NodeStates):
        gone = {node for node in _brokers(view) if target.has_exited(node_name(node)).holds}
    return [phrase for name in partitions for phrase in _unsettled(target, name, view.partitions.get(name), gone)]


def out_of_sync(target: Target, partitions: Sequence[TopicPartition]) -> list[str]:
    """Which of ``partitions`` lack a leader or a replica in their ISR, one phrase each, exited brokers included.

    And which controllers of a quorum lack a committed record.
    """
    view = target.view()
    phrases = (_out_of_sync(name, view.partitions.get(name), frozenset()) for name in partitions)
    return [*(phrase for phrase in phrases if phrase is not None), *_behind_the_quorum(view)]


def _behind_the_quorum(view: ClusterView) -> Iterator[str]:
    if view.quorum is None:
        return
    for name, end in sorted(view.quorum.log_end_offsets.items()):
        if end < view.quorum.high_watermark:
            yield f"node {name}: its metadata log ends at {end}, and {view.quorum.high_watermark} is decided"


def _brokers(view: ClusterView) -> list[NodeId]:
    return sorted({node for partition in view.partitions.values() for node in partition.replicas} - set(view.live))


def _asks_the_controller(until: Until) -> bool:
    wanted = (until.leader, until.leader_epoch, until.isr, until.elr, until.live)
    return any(value is not None for value in wanted)


def _unmet_elsewhere(until: Until, target: Target) -> Iterator[str]:
    """Conditions that depend neither on the controller nor on a replica."""
    for node in until.exited:
        assert supports(target, NodeStates), "a plan refuses the step"
        receipt = target.has_exited(node_name(NodeId(node)))
        if not receipt.holds:
            yield receipt.seen
    if until.committed is not None:
        assert supports(target, CommittedOffsets), "a plan refuses the step"
        group = until.committed.group
        stored = target.committed(group)
        for name, offset in until.committed.offsets.items():
            seen = stored.get(partition_named(name))
            if seen != offset:
                yield f"{name}: group {group} has committed {'nothing' if seen is None else seen}, not {offset}"


def _unmet_view(until: Until, view: ClusterView, meant: Sequence[TopicPartition]) -> Iterator[str]:
    if until.live is not None and set(until.live) != set(view.live):
        yield f"the brokers with a session are {_listed(view.live)}, not {_listed(until.live)}"
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
        if until.elr is not None and set(until.elr) != set(seen.elr):
            yield f"{name}: the ELR is {_listed(seen.elr)}, not {_listed(until.elr)}"


def _unmet_replica(wanted: ReplicaState, target: Target, name: TopicPartition) -> Iterator[str]:
    assert supports(target, ReplicaStates), "a plan refuses the step"
    seen = target.replica(node_name(NodeId(wanted.node)), name)
    if seen is None:
        yield f"{name}: {_silent(target, NodeId(wanted.node))}"
        return
    for field in _REPLICA_FIELDS:
        value = getattr(wanted, field)
        if value not in (None, getattr(seen, field)):
            yield f"{name}: on broker {wanted.node} {field} is {getattr(seen, field)}, not {value}"


def _unsettled(target: Target, name: TopicPartition, seen: PartitionView | None, gone: set[NodeId]) -> Iterator[str]:
    if (phrase := _out_of_sync(name, seen, gone)) is not None:
        yield phrase
        return
    assert seen is not None, "that would be a phrase"
    if not supports(target, ReplicaStates):
        return
    leading = target.replica(node_name(seen.leader), name)
    for node in _staying(seen, gone):
        replica = target.replica(node_name(node), name)
        if leading is None or replica is None:
            silent = seen.leader if leading is None else node
            yield f"{name}: {_silent(target, silent)}"
        else:
            yield from _behind(name, node, replica, seen.leader, leading)


def _silent(target: Target, node: NodeId) -> str:
    """About a broker that says nothing of a replica."""
    if supports(target, NodeStates):
        return target.is_running(node_name(node)).seen
    return f"broker {node} says nothing of it"


def _out_of_sync(name: TopicPartition, seen: PartitionView | None, gone: Set[NodeId]) -> str | None:
    if seen is None:
        return f"{name}: the controller says nothing of it"
    if seen.leader == NO_LEADER:
        return f"{name}: there is no leader"
    staying = _staying(seen, gone)
    if set(seen.isr) != set(staying):
        return f"{name}: the ISR is {_listed(seen.isr)}, not {_listed(staying)}"
    return None


def _staying(seen: PartitionView, gone: Set[NodeId]) -> list[NodeId]:
    return [node for node in seen.replicas if node not in gone]


def _behind(
    name: TopicPartition, node: NodeId, replica: ReplicaView, leader: NodeId, leading: ReplicaView
) -> Iterator[str]:
    if replica.leader != leader:
        yield f"{name}: broker {node} takes {replica.leader} for the leader, not {leader}"
    elif (replica.log_end_offset, replica.high_watermark) != (leading.log_end_offset, leading.log_end_offset):
        yield (
            f"{name}: on broker {node} the log ends at {replica.log_end_offset} with high watermark "
            f"{replica.high_watermark}, but the leader's log ends at {leading.log_end_offset}"
        )


def _listed(nodes: Sequence[int]) -> str:
    return "[" + ", ".join(map(str, nodes)) + "]"
