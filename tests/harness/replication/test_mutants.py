"""Guards whose absence does harm in one known schedule."""

from __future__ import annotations

from dataclasses import replace

from harness.error_codes import ErrorCode
from harness.model import NodeId
from harness.replication.knobs import GENERATIONS, Knobs
from tests.harness.replication.nodes import Message
from tests.harness.replication.world import World

CURRENT = GENERATIONS["3.7"]
ZERO, ONE, TWO = NodeId(0), NodeId(1), NodeId(2)


def diverged_follower(knobs: Knobs, min_isr: int) -> World:
    """Replica 2 leads; replica 1 has u1 where the leader has n1."""
    world = World(knobs, 3, min_isr)
    world.settle()
    world.produce(ZERO, "m0")
    for _ in range(3):
        for node in (ONE, TWO):
            world.fetch(node)
        world.settle()
    world.produce(ZERO, "u1", acks=1)
    world.fetch(ONE)
    world.settle()
    world.kill(ZERO)
    world.impose(TWO, 1, (ONE, TWO))
    world.settle()
    world.produce(TWO, "n1")
    world.fetch(ONE)
    return world


def answer_of_last_produce(knobs: Knobs) -> ErrorCode | None:
    world = diverged_follower(knobs, 2)
    world.settle()
    answer = world.produced[-1].answer
    return answer.error if answer else None


def test_a_fetch_answered_as_diverging_does_not_acknowledge_anything() -> None:
    assert answer_of_last_produce(CURRENT) is None
    assert answer_of_last_produce(replace(CURRENT, diverging_fetch_is_progress=True)) is ErrorCode.NONE


def log_after_stale_answer(knobs: Knobs) -> list[str]:
    world = diverged_follower(knobs, 1)
    world.settle(held_back)
    world.impose(ONE, 2, (ONE, TWO))
    world.settle(held_back)
    assert world.replica(ONE).role == "leader"
    world.settle()
    return [record.value for record in world.brokers[ONE].records]


def held_back(message: Message) -> bool:
    return message.kind == "fetch-response"


def test_a_leader_does_not_cut_its_log_on_an_answer_from_before_its_election() -> None:
    assert log_after_stale_answer(CURRENT) == ["m0", "u1"]
    assert log_after_stale_answer(replace(CURRENT, stale_truncation_applied=True)) == ["m0"]


def lost_after_unheard_expansion(knobs: Knobs) -> list[str]:
    """The controller has taken replica 2 into the ISR; the leader has not heard of it, and 2 has fallen silent."""
    world = World(knobs, 3, 2)
    world.settle()
    world.kill(TWO)
    world.expire(TWO)
    world.settle()
    world.start(TWO)
    world.settle()
    world.fetch(TWO)
    world.settle(on_its_way_to_the_leader)
    world.tick(2_500)
    world.produce(ZERO, "m0")
    for _ in range(2):
        world.fetch(ONE)
        world.settle(on_its_way_to_the_leader)
    for node in (ZERO, ONE):
        world.kill(node)
        world.expire(node)
    assert world.leader == TWO
    return world.lost()


def on_its_way_to_the_leader(message: Message) -> bool:
    return message.kind in ("isr-response", "states") and message.destination == ZERO


def test_the_watermark_waits_for_a_member_that_the_controller_may_have_added_already() -> None:
    assert lost_after_unheard_expansion(CURRENT) == []
    assert lost_after_unheard_expansion(replace(CURRENT, isr_update="naive")) == ["m0"]
