"""Small clusters in memory and the schedules that the five texts describe, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from harness.model import NO_LEADER, NodeId, Offset, TopicPartition
from harness.replication.knobs import CURRENT_GENERATION, GENERATIONS, Knobs
from harness.replication.log_state import StoredLog
from harness.replication.messages import (
    Append,
    Appended,
    EpochEntry,
    PartitionStateChanged,
    ProduceRequested,
    ReplicaEffect,
)
from harness.replication.replica import Replica, ReplicaConfig
from tests.harness.replication.nodes import Message, Produced
from tests.harness.replication.world import World

ZERO, ONE, TWO, THREE = (NodeId(node) for node in range(4))
ALL_GENERATIONS = tuple(GENERATIONS)


def knobs_of(generation: str = CURRENT_GENERATION, **changed: Any) -> Knobs:
    """A generation's knobs, some of them changed."""
    return replace(GENERATIONS[generation], **changed)


def cluster(
    generation: str = CURRENT_GENERATION,
    nodes: int = 2,
    min_isr: int = 1,
    *,
    unclean: bool = False,
    tell: Callable[[str, object], None] = lambda _who, _effect: None,
    **knobs: Any,
) -> World:
    """Replica 0 leads, everybody is in sync, and nothing is written yet."""
    world = World(knobs_of(generation, **knobs), nodes, min_isr, unclean=unclean, tell=tell)
    world.settle()
    return world


def replicate(world: World, *nodes: NodeId, rounds: int = 4) -> None:
    """``nodes`` (all that live, if none are named) fetch until everything is everywhere and known to be."""
    for _ in range(rounds):
        for node in nodes or world.alive:
            world.fetch(node)
        world.settle()


def fetch(world: World, *nodes: NodeId) -> None:
    """One fetch and its answer, node by node."""
    for node in nodes:
        world.fetch(node)
        world.settle()


def fetch_unheard(world: World, *nodes: NodeId) -> None:
    """One fetch each that the leader hears and whose answer gets lost."""
    for node in nodes:
        world.fetch(node)
    world.settle(lambda message: message.kind == "fetch-response")
    for message in [message for message in world.in_flight if message.kind == "fetch-response"]:
        world.drop(message)


def follow_without_fetching(world: World, node: NodeId) -> None:
    """``node`` does everything that comes before its first fetch from its leader; that fetch is lost."""
    world.fetch(node)
    world.settle(lambda message: message.kind == "fetch-request")
    for message in [message for message in world.in_flight if message.kind == "fetch-request"]:
        world.drop(message)


def crash(world: World, node: NodeId) -> None:
    """The process dies, its watermark is on disk, and the controller notices."""
    world.checkpoint(node)
    world.kill(node)
    world.expire(node)
    world.settle()


def come_back(world: World, node: NodeId) -> None:
    """Start ``node`` again, and let it and its peers catch up."""
    world.start(node)
    world.settle()
    replicate(world)


def values(world: World, node: NodeId) -> list[str]:
    """What lies in the log of ``node``, dead or alive."""
    return [record.value for record in world.brokers[node].records]


def stamped(world: World, node: NodeId) -> list[str]:
    """Likewise with leader epochs: ``m0@0``."""
    return [f"{record.value}@{record.leader_epoch}" for record in world.brokers[node].records]


def logs(world: World) -> list[list[str]]:
    """Every broker's log, with leader epochs."""
    return [stamped(world, node) for node in world.brokers]


def lose_tail(world: World, node: NodeId, kept: int) -> None:
    """What power loss leaves of the log of ``node``: its first ``kept`` records, as far as they fill batches."""
    broker = world.brokers[node]
    assert broker.replica is None, "only a dead process loses its page cache"
    broker.log = [batch for batch in broker.log if batch.span.end_offset <= kept]


class Ends(NamedTuple):
    """The two numbers that the texts draw under every replica."""

    log_end_offset: Offset
    high_watermark: Offset


def ends(world: World, node: NodeId) -> Ends:
    """Those of ``node``."""
    replica = world.replica(node)
    return Ends(replica.log_end_offset, replica.high_watermark)


class Heard:
    """Listens to a world: every effect of a given kind, with who did it."""

    def __init__(self) -> None:
        self.effects: list[tuple[str, object]] = []

    def __call__(self, who: str, effect: object) -> None:
        self.effects.append((who, effect))

    def of(self, *kinds: type) -> list[tuple[str, Any]]:
        """Only those of ``kinds``."""
        return [(who, effect) for who, effect in self.effects if isinstance(effect, kinds)]


# ------------------------------------------------------------------------------------------------- one replica alone


def a_replica(
    knobs: Knobs | None = None,
    *,
    node: NodeId = ZERO,
    end: Offset = 0,
    watermark: Offset = 0,
    epochs: Iterable[EpochEntry] = (),
    min_isr: int = 1,
    lag_ms: int = 2_000,
) -> Replica:
    """A replica as it comes up on a log of ``end`` records, before the controller's first word."""
    return Replica(
        node,
        TopicPartition("ledger", 0),
        knobs or knobs_of(),
        ReplicaConfig(min_isr, lag_ms),
        StoredLog(0, end, epochs, watermark),
    )


def leads(leader: NodeId, *isr: NodeId, epoch: int = 0, version: int | None = None) -> PartitionStateChanged:
    """The controller's word; the replicas are 0, 1 and whoever else is in ``isr``."""
    replicas = tuple(sorted({ZERO, ONE, *isr}))
    return PartitionStateChanged(leader, epoch, isr, replicas, epoch if version is None else version, 0)


def write(replica: Replica, records: int, *, acks: int = 1, now_ns: int = 0) -> list[ReplicaEffect]:
    """Produce one batch at a leader and store it; returns what the leader does then."""
    [append] = replica.handle(ProduceRequested(f"p{replica.log_end_offset}", acks, (records,), b"", now_ns))
    assert isinstance(append, Append)
    return replica.handle(Appended(now_ns))


# --------------------------------------------------------------------------------------------------- the schedules


def watermark_behind(world: World, follower: NodeId = ONE, *, acks: int = -1) -> Produced:
    """m1 is everywhere and known to be; m2 is everywhere and acknowledged, but ``follower`` does not know yet."""
    world.produce(ZERO, "m1")
    replicate(world)
    produced = world.produce(ZERO, "m2", acks=acks)
    fetch(world, follower)
    fetch_unheard(world, follower)
    assert produced.acknowledged
    assert ends(world, ZERO) == (2, 2)
    assert ends(world, follower) == (2, 1)
    return produced


def restart_then_leader_death(generation: str, *, acks: int = -1, writes_between: bool = False, **knobs: Any) -> World:
    """A01: the follower restarts, and its leader dies before it serves it again.

    The restart is too short to be noticed, so that the follower is still in the ISR. With ``writes_between`` the
    new leader takes m3 before the old one returns. Nobody has fetched since the return.
    """
    world = cluster(generation, **knobs)
    watermark_behind(world, acks=acks)
    world.checkpoint(ONE)
    world.bounce(ONE)
    world.settle()
    follow_without_fetching(world, ONE)
    crash(world, ZERO)
    assert world.leader == ONE
    if writes_between:
        world.produce(ONE, "m3")
        world.settle()
    world.start(ZERO)
    world.settle()
    return world


def two_leaders_die(generation: str, *, min_isr: int = 2, **knobs: Any) -> World:
    """A02: three replicas, two clean elections, no restart; then everybody returns."""
    world = cluster(generation, 3, min_isr, **knobs)
    world.produce(ZERO, "m1")
    replicate(world)
    produced = world.produce(ZERO, "m2")
    fetch(world, ONE, TWO)
    fetch_unheard(world, ONE, TWO)
    assert produced.acknowledged
    crash(world, ZERO)
    crash(world, ONE)
    assert world.leader == TWO
    world.produce(TWO, "m3", acks=1)
    come_back(world, ONE)
    come_back(world, ZERO)
    return world


def power_loss_of_both(generation: str, *, acks: int = -1, **knobs: Any) -> World:
    """A04: m2 is on both page caches, but only on replica 0's disk; 1 starts first and writes m3 in its place."""
    world = cluster(generation, **knobs)
    for value in ("m1", "m2"):
        world.produce(ZERO, value, acks=acks)
        replicate(world)
    for node in (ZERO, ONE):
        world.checkpoint(node)
        world.kill(node)
    lose_tail(world, ONE, 1)
    for node in (ZERO, ONE):
        world.expire(node)
    world.start(ONE)
    world.settle()
    assert world.leader == ONE
    world.produce(ONE, "m3")
    world.settle()
    come_back(world, ZERO)
    return world


def take_turns(generation: str, *common: str) -> World:
    """A06: replicas 0 and 1 take turns as the only one alive, each leading and writing; then 0 returns.

    ``common`` are records that both have from before.
    """
    world = cluster(generation, unclean=True)
    for value in common:
        world.produce(ZERO, value)
    replicate(world)
    for dies, lives, value in ((ONE, ZERO, "a0"), (ZERO, ONE, "b0"), (ONE, ZERO, "a1"), (ZERO, ONE, "b1")):
        crash(world, dies)
        if lives not in world.alive:
            world.start(lives)
            world.settle()
        assert world.leader == lives
        world.produce(lives, value, acks=1)
        world.settle()
    come_back(world, ZERO)
    return world


def fast_failover(generation: str, end: Offset = 21) -> World:
    """A08: 0 has records 11 to 20 alone when 1 leads for a moment, writes from 11 up to ``end`` (exclusive), and 0,
    which has heard nothing of that, leads again and writes 21 to 30."""
    world = cluster(generation)
    world.produce(ZERO, *(f"c{offset}" for offset in range(11)))
    replicate(world)
    world.produce(ZERO, *(f"a{offset}" for offset in range(11, 21)), acks=1)
    world.impose(ONE, 1, (ONE,))
    for message in [message for message in world.in_flight if message.destination == ZERO]:
        world.drop(message)
    world.settle()
    world.produce(ONE, *(f"b{offset}" for offset in range(11, end)), acks=1)
    world.impose(ZERO, 2, (ZERO,))
    world.settle()
    world.produce(ZERO, *(f"a{offset}" for offset in range(21, 31)), acks=1)
    replicate(world, rounds=9)
    return world


def missed_epoch(generation: str) -> World:
    """A10: as :func:`zombie_follower`, but replica 1 cannot fetch meanwhile, and hears of the last election.

    Its leader is the one that it followed before, two epochs later.
    """
    world = cluster(generation, 3)
    produce_each(world, ZERO, "m", range(4))
    replicate(world)
    world.produce(ZERO, "u4", acks=1)
    fetch(world, ONE)
    world.impose(TWO, 1, (ZERO, TWO))
    for message in [message for message in world.in_flight if message.destination == ONE]:
        world.drop(message)
    world.settle()
    produce_each(world, TWO, "n", (4, 5))
    replicate(world, ZERO, TWO)
    world.impose(ZERO, 2, (ZERO, TWO))
    world.settle()
    replicate(world)
    return world


def zombie_follower(generation: str) -> World:
    """A11: replica 1 hears of no election while 0 lost the leadership to 2, was cut, and got it back."""
    world = cluster(generation, 3)

    def settle() -> None:
        world.settle(lambda message: message.kind == "states" and message.destination == ONE)

    produce_each(world, ZERO, "m", range(4))
    replicate(world)
    world.produce(ZERO, "u4", acks=1)
    fetch(world, ONE)
    world.impose(TWO, 1, (ZERO, TWO))
    settle()
    produce_each(world, TWO, "n", (4, 5))
    for _ in range(4):
        world.fetch(ZERO)
        settle()
    world.impose(ZERO, 2, (ZERO, TWO))
    settle()
    for _ in range(3):
        world.fetch(ONE)
        settle()
    return world


def join_at_a_stale_watermark(generation: str) -> World:
    """B08: ten records are committed, but the new leader's own watermark is 5, and replica 2 has five of them.

    Replica 3 is in sync and does not fetch. Then the new leader dies, too.
    """
    world = cluster(generation, 4, min_isr=2)
    crash(world, TWO)
    produce_each(world, ZERO, "m", range(5))
    replicate(world)
    produce_each(world, ZERO, "m", range(5, 10))
    fetch(world, ONE, THREE)
    fetch_unheard(world, ONE, THREE)
    assert all(produced.acknowledged for produced in world.produced)
    crash(world, ZERO)
    world.start(TWO)
    world.settle()
    world.fetch_batches = 5
    fetch(world, TWO)
    fetch_unheard(world, TWO)
    world.settle()
    crash(world, ONE)
    return world


def join_after_an_empty_restart(generation: str) -> World:
    """B11: the request to let replica 2 in is under way when it restarts without its log; then the others die."""
    world = cluster(generation, 3)
    crash(world, TWO)
    world.produce(ZERO, "m0")
    replicate(world)
    world.start(TWO)
    world.settle()
    for _ in range(3):
        world.fetch(TWO)
        world.settle(is_kind("isr-request"))
    world.kill(TWO)
    world.expire(TWO)
    lose_tail(world, TWO, 0)
    world.start(TWO)
    world.settle()
    for node in (ZERO, ONE):
        crash(world, node)
    if world.leader == NO_LEADER:
        come_back(world, ONE)
    return world


def last_replica_standing(generation: str, *, min_isr: int = 2) -> World:
    """B05: the followers have lost touch, and their leader, the last in sync, loses m1 with its power."""
    world = cluster(generation, 3, min_isr)
    produce_each(world, ZERO, "m", range(2))
    replicate(world)
    for node in (ONE, TWO):
        world.expire(node)
        world.settle()
    world.kill(ZERO)
    lose_tail(world, ZERO, 1)
    world.expire(ZERO)
    world.start(ZERO)
    world.settle()
    for node in (ONE, TWO):
        world.heartbeat(node)
        world.settle()
    replicate(world)
    return world


def produce_each(world: World, node: NodeId, letter: str, numbers: Iterable[int], *, acks: int = -1) -> None:
    """One batch and one record for each number: m0, m1, ..."""
    for number in numbers:
        world.produce(node, f"{letter}{number}", acks=acks)


def elect(world: World, leader: NodeId, *isr: NodeId) -> None:
    """Another controller's word, a new epoch later: for elections that no clean controller would hold."""
    epoch = 1 + max(
        [partition.leader_epoch for partition in world.controller.partitions]
        + [world.replica(node).leader_epoch for node in world.alive]
    )
    world.impose(leader, epoch, isr)
    world.settle()


def is_kind(*kinds: str) -> Callable[[Message], bool]:
    """For :meth:`World.settle`: holds messages of these kinds."""
    return lambda message: message.kind in kinds
