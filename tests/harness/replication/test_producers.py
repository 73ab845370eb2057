from __future__ import annotations

import pytest

from harness.error_codes import ErrorCode
from harness.model import NodeId
from harness.replication.knobs import GENERATIONS
from harness.replication.messages import BatchSpan, ProducerStamp
from harness.replication.producers import ProducerStates, StoredBatch
from tests.harness.replication.world import World

ZERO, ONE = NodeId(0), NodeId(1)
LARGEST = 2**31 - 1


def span(base: int, end: int, sequence: int, *, epoch: int = 0, producer: int = 7) -> BatchSpan:
    return BatchSpan(base, end, 0, ProducerStamp(producer, epoch, sequence))


def stamp(sequence: int, *, epoch: int = 0, producer: int = 7) -> ProducerStamp:
    return ProducerStamp(producer, epoch, sequence)


SIX = [span(10 * number, 10 * number + 3, 3 * number) for number in range(6)]


@pytest.mark.parametrize(
    ("next_stamp", "error"),
    [
        (stamp(18), ErrorCode.NONE),
        (stamp(19), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (stamp(17), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (stamp(0, epoch=1), ErrorCode.NONE),
        (stamp(18, epoch=1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (stamp(18, epoch=-1), ErrorCode.INVALID_PRODUCER_EPOCH),
        (stamp(99, producer=8), ErrorCode.NONE),
    ],
)
def test_a_batch_must_continue_its_producers_sequence(next_stamp: ProducerStamp, error: ErrorCode) -> None:
    assert ProducerStates(SIX).error(next_stamp) is error


def test_the_last_five_batches_of_a_producer_are_recognised_when_they_are_sent_again() -> None:
    states = ProducerStates(SIX)
    found = [states.duplicate(stamp(3 * number), 3) for number in range(6)]
    assert found == [None, *(StoredBatch(3 * n, 3 * n + 2, 10 * n, 10 * n + 3) for n in range(1, 6))]
    assert states.duplicate(stamp(15), 2) is None
    assert states.duplicate(stamp(15, epoch=1), 3) is None
    assert states.duplicate(stamp(15, producer=8), 3) is None


def test_sequences_go_on_from_zero_after_the_largest_integer() -> None:
    states = ProducerStates([span(0, 3, LARGEST - 1)])
    assert states.error(stamp(1)) is ErrorCode.NONE
    assert states.error(stamp(LARGEST)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.duplicate(stamp(LARGEST - 1), 3) == StoredBatch(LARGEST - 1, 0, 0, 3)


def test_truncation_takes_batches_back_and_forgets_producers_without_any() -> None:
    states = ProducerStates([*SIX, span(60, 61, 0, producer=8)])
    states.truncated(40)
    assert states.error(stamp(12)) is ErrorCode.NONE
    assert states.duplicate(stamp(12), 3) is None
    assert states.error(stamp(55, producer=8)) is ErrorCode.NONE


def a_world(min_isr: int = 1) -> World:
    world = World(GENERATIONS["3.7"], 2, min_isr)
    world.settle()
    return world


def replicate(world: World, times: int = 3) -> None:
    for _ in range(times):
        for node in world.alive:
            world.fetch(node)
        world.settle()


def test_a_batch_sent_again_to_the_next_leader_is_acknowledged_where_it_lies() -> None:
    world = a_world()
    world.produce(ZERO, "m0", "m1", producer=stamp(0))
    world.produce(ZERO, "m2", producer=stamp(2))
    replicate(world)
    world.kill(ZERO)
    world.expire(ZERO)
    world.settle()
    again = world.produce(ONE, "m0", "m1", producer=stamp(0))
    assert again.answer is not None
    assert (again.answer.error, again.answer.base_offset) == (ErrorCode.NONE, 0)
    assert len(world.brokers[ONE].records) == 3


def test_a_batch_sent_again_waits_for_the_watermark_like_the_first_time() -> None:
    world = a_world(2)
    first = world.produce(ZERO, "m0", producer=stamp(0))
    second = world.produce(ZERO, "m1", producer=stamp(1))
    again = world.produce(ZERO, "m0", producer=stamp(0))
    assert not again.acknowledged
    world.fetch_batches = 1
    replicate(world, 2)
    assert (first.acknowledged, again.acknowledged, second.acknowledged) == (True, True, False)
    assert len(world.brokers[ZERO].records) == 2


def test_a_gap_in_the_sequence_is_refused_before_the_append() -> None:
    world = a_world()
    world.produce(ZERO, "m0", producer=stamp(0))
    gap = world.produce(ZERO, "m2", producer=stamp(2))
    assert gap.answer is not None
    assert gap.answer.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert len(world.brokers[ZERO].records) == 1


def test_a_follower_forgets_the_sequences_that_it_truncates() -> None:
    world = a_world()
    world.produce(ZERO, "m0", producer=stamp(0))
    replicate(world)
    world.produce(ZERO, "u1", acks=1, producer=stamp(1))
    world.expire(ZERO)
    world.heartbeat(ZERO)
    world.settle()
    world.produce(ONE, "n1", producer=stamp(1, producer=8))
    replicate(world, 5)
    assert [record.value for record in world.brokers[ZERO].records] == ["m0", "n1"]
    world.expire(ONE)
    world.settle()
    taken = world.produce(ZERO, "u1", acks=1, producer=stamp(1))
    assert taken.acknowledged
    assert [record.value for record in world.brokers[ZERO].records] == ["m0", "n1", "u1"]


def test_a_restarted_replica_still_knows_its_producers() -> None:
    world = a_world()
    world.produce(ZERO, "m0", producer=stamp(0))
    replicate(world)
    for node in (ONE, ZERO):
        world.kill(node)
        world.start(node)
    world.settle()
    again = world.produce(world.leader, "m0", acks=1, producer=stamp(0))
    assert again.answer is not None
    assert (again.answer.error, again.answer.base_offset) == (ErrorCode.NONE, 0)
