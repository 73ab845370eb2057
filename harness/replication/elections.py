"""Leader elections: pure functions of a partition's state, the live brokers, and the rules.

Follows Kafka's ``PartitionLeaderSelector`` for the ISR alone and ``PartitionChangeBuilder`` for eligible leader
replicas (KIP-966).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import cast

from harness.error_codes import ErrorCode
from harness.model import NO_LEADER, NodeId
from harness.replication.controller_messages import PartitionState, TopicState
from harness.replication.knobs import Knobs
from harness.replication.topic_configs import MIN_INSYNC_REPLICAS, UNCLEAN_ELECTION, parsed


@dataclass(frozen=True, slots=True)
class Rules:
    """How leaders are elected.

    Attributes:
        eligible_replicas: whether replicas that left the ISR may stay eligible (the knob ``elections=elr``).
        min_insync_replicas: ``min.insync.replicas``; above the replication factor it means that.
        unclean: ``unclean.leader.election.enable``: any replica may lead when no eligible one is alive.
        shrink_raises_epoch: the knob of that name.
        anybody: a bug: every live replica may lead.
        last_member_leaves: whether the last member of an ISR leaves it, too, with its broker (the knob
            ``last_isr_member``).
    """

    eligible_replicas: bool
    min_insync_replicas: int
    unclean: bool
    shrink_raises_epoch: bool = False
    anybody: bool = False
    last_member_leaves: bool = False

    @property
    def may_leave_nobody_in_sync(self) -> bool:
        """Whether an ISR may become empty."""
        return self.eligible_replicas or self.last_member_leaves


class TopicRules:
    """The rules of each topic.

    Args:
        knobs: the protocol generation.
        min_insync_replicas: ``min.insync.replicas``, where a topic has no other.
        unclean: ``unclean.leader.election.enable``, likewise.

    Attributes:
        may_leave_nobody_in_sync: whether there is or was a topic whose ISRs may become empty.
    """

    def __init__(self, knobs: Knobs, min_insync_replicas: int, *, unclean: bool) -> None:
        self._leaves = knobs.last_isr_member == "leaves_if_unclean"
        self._cluster = Rules(
            knobs.elections == "elr",
            min_insync_replicas,
            unclean,
            knobs.shrink_raises_epoch,
            not {"anybody_elected", "unclean_called_clean"}.isdisjoint(knobs.bugs),
            unclean and self._leaves,
        )
        self.may_leave_nobody_in_sync = self._cluster.may_leave_nobody_in_sync or self._leaves

    def of(self, topic: TopicState | None) -> Rules:
        """The rules of ``topic``; None: of one without configurations of its own."""
        configs = dict(topic.configs) if topic is not None else {}
        if not {MIN_INSYNC_REPLICAS, UNCLEAN_ELECTION} & set(configs):
            return self._cluster
        least = parsed(MIN_INSYNC_REPLICAS, configs.get(MIN_INSYNC_REPLICAS, str(self._cluster.min_insync_replicas)))
        unclean = parsed(UNCLEAN_ELECTION, configs.get(UNCLEAN_ELECTION, str(self._cluster.unclean)))
        return replace(
            self._cluster,
            min_insync_replicas=int(cast("int", least)),
            unclean=bool(unclean),
            last_member_leaves=bool(unclean) and self._leaves,
        )


def settle(
    partition: PartitionState, live: Collection[NodeId], rules: Rules, distrusted: NodeId | None = None
) -> PartitionState:
    """``partition`` with leader and ISR for exactly the live brokers ``live``; unchanged when it is so already.

    A leader that is alive and in the ISR stays; otherwise the first live ISR member in replica order leads, then an
    eligible replica, then the last known leader if no replica is eligible, then by an unclean election any live
    replica, or none. Dead brokers leave the ISR one by one, the lowest id first. Where an ISR may not be empty, its
    last member stays, and only that one may lead cleanly later.

    Args:
        partition: the state before.
        live: the brokers with a session.
        rules: of elections.
        distrusted: a broker that came back from an unclean shutdown: it leaves ISR and ELR.
    """
    isr = tuple(node for node in partition.isr if node in live and node != distrusted)
    kept = isr if isr or rules.may_leave_nobody_in_sync else tuple(sorted(partition.isr)[-1:])
    leader = partition.leader
    if leader not in isr and not (leader in live and not partition.isr):
        leader = _first(partition.replicas, live if rules.anybody else isr)
    if leader != NO_LEADER and leader not in isr and rules.anybody:
        return _uncleanly(partition, leader)
    after = _with_isr(partition, kept, rules, distrusted)
    if leader == NO_LEADER:
        return _elect(after, partition, live, rules)
    removed = len(partition.isr) - len(isr) if rules.shrink_raises_epoch and leader == partition.leader else 0
    return _led_by(after, leader, partition, removed)


def with_isr(partition: PartitionState, isr: tuple[NodeId, ...], rules: Rules) -> PartitionState:
    """``partition`` after its leader has changed the ISR."""
    return _versioned(_with_isr(partition, isr, rules, None), partition)


def without_eligible(partition: PartitionState) -> PartitionState:
    """``partition`` without its ELR, which only a bug drops."""
    return _versioned(partition._replace(elr=()), partition)


def choose(
    partition: PartitionState, leader: NodeId | None, live: Collection[NodeId], rules: Rules, *, unclean: bool
) -> PartitionState | ErrorCode:
    """``partition`` with the leader that an operator requests, or why not.

    ``leader`` None: the preferred one; with ``unclean`` any replica that may lead, if there is no leader.
    """
    if leader is None and unclean:
        return _revive(partition, live, rules)
    wanted = partition.replicas[0] if leader is None else leader
    if wanted == partition.leader:
        return ErrorCode.ELECTION_NOT_NEEDED
    if wanted not in partition.replicas or wanted not in live:
        return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE if unclean else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    if wanted in partition.isr:
        return _led_by(partition, wanted, partition)
    if wanted in partition.elr and not set(partition.isr) & set(live):
        return _led_by(_with_isr(partition, (wanted,), rules, None), wanted, partition)
    return _uncleanly(partition, wanted) if unclean else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


def _revive(partition: PartitionState, live: Collection[NodeId], rules: Rules) -> PartitionState | ErrorCode:
    if partition.leader != NO_LEADER:
        return ErrorCode.ELECTION_NOT_NEEDED
    after = settle(partition, live, Rules(rules.eligible_replicas, rules.min_insync_replicas, unclean=True))
    return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE if after.leader == NO_LEADER else after


def _elect(after: PartitionState, before: PartitionState, live: Collection[NodeId], rules: Rules) -> PartitionState:
    """No ISR member can lead: elect the next best replica, or none."""
    eligible = _first(after.replicas, [node for node in after.elr if node in live])
    if eligible != NO_LEADER:
        return _led_by(_with_isr(after, (eligible,), rules, None), eligible, before)
    last_known = before.leader if before.leader != NO_LEADER else before.last_known_leader
    if rules.eligible_replicas and not after.isr and not after.elr and last_known in live:
        return _uncleanly(before, last_known)
    anybody = _first(after.replicas, live) if rules.unclean else NO_LEADER
    if anybody != NO_LEADER:
        return _uncleanly(before, anybody)
    if rules.eligible_replicas:
        after = after._replace(last_known_leader=last_known)
    deposed = before.leader != NO_LEADER
    return _led_by(after, NO_LEADER, before, len(before.isr) if rules.shrink_raises_epoch and deposed else 0)


def _uncleanly(before: PartitionState, leader: NodeId) -> PartitionState:
    """The ISR becomes the leader alone; other replicas may lack its records."""
    return _led_by(before._replace(isr=(leader,), elr=(), last_known_elr=()), leader, before)


def _led_by(after: PartitionState, leader: NodeId, before: PartitionState, removed: int = 0) -> PartitionState:
    """``removed``: the number of ISR changes that each raised the epoch; 0: only a new leader does."""
    epoch = before.leader_epoch + (removed or leader != before.leader)
    known = after.last_known_leader if leader == NO_LEADER else NO_LEADER
    return _versioned(after._replace(leader=leader, leader_epoch=epoch, last_known_leader=known), before)


def _versioned(after: PartitionState, before: PartitionState) -> PartitionState:
    return before if after == before else after._replace(partition_epoch=before.partition_epoch + 1)


def _with_isr(
    partition: PartitionState, isr: tuple[NodeId, ...], rules: Rules, distrusted: NodeId | None
) -> PartitionState:
    """``partition`` with another ISR and the ELR that follows from it.

    A replica that leaves an ISR smaller than ``min.insync.replicas`` stays eligible, for no record can be committed
    without it, until the ISR is large enough again, or the replica came back from an unclean shutdown.
    """
    if not rules.eligible_replicas:
        return partition._replace(isr=isr)
    if len(isr) >= min(rules.min_insync_replicas, len(partition.replicas)):
        return partition._replace(isr=isr, elr=(), last_known_elr=())
    left = (set(partition.elr) | set(partition.isr)) - set(isr)
    elr = left - {distrusted}
    known = (left | set(partition.last_known_elr)) - set(isr) - elr
    return partition._replace(isr=isr, elr=_ordered(partition, elr), last_known_elr=_ordered(partition, known))


def _ordered(partition: PartitionState, nodes: Collection[NodeId]) -> tuple[NodeId, ...]:
    return tuple(node for node in partition.replicas if node in nodes)


def _first(replicas: Iterable[NodeId], electable: Collection[NodeId]) -> NodeId:
    return next((node for node in replicas if node in electable), NO_LEADER)
