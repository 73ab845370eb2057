"""The server-side assignors: balance, stickiness, and topics that not all members subscribe to."""

from __future__ import annotations

import random

import pytest

from harness.coordination.assignors import NOTHING, Share, Subscriber, TopicIdPartition, ranges, uniform

T, U = b"t" * 16, b"u" * 16


def share(*numbers: int, topic: bytes = T) -> Share:
    return frozenset(TopicIdPartition(topic, number) for number in numbers)


def of(topics: set[bytes], before: Share = NOTHING, instance: str | None = None) -> Subscriber:
    return Subscriber(frozenset(topics), before, instance)


def test_uniform_moves_no_more_than_it_must() -> None:
    before = {"a": share(0, 1, 2), "b": share(3, 4, 5)}
    members = {name: of({T}, had) for name, had in before.items()} | {"c": of({T})}
    shares = uniform(members, {T: 6})
    assert sorted(len(one) for one in shares.values()) == [2, 2, 2]
    assert shares["a"] < before["a"]
    assert shares["b"] < before["b"]


def test_uniform_lets_those_keep_one_more_who_had_it() -> None:
    members = {"a": of({T}, share(0)), "b": of({T}, share(1, 2))}
    assert uniform(members, {T: 3}) == {"a": share(0), "b": share(1, 2)}


@pytest.mark.parametrize("assign", [uniform, ranges])
def test_every_partition_has_one_member_that_subscribes_to_it(assign: object) -> None:
    for seed in range(200):
        drawn = random.Random(seed)
        partitions = {T: drawn.randrange(6), U: drawn.randrange(6)}
        everything = [TopicIdPartition(topic, one) for topic, count in partitions.items() for one in range(count)]
        drawn.shuffle(everything)
        members = {}
        for name in "abcde"[: drawn.randrange(1, 6)]:
            had = frozenset(everything[:2])
            del everything[:2]
            members[name] = of(drawn.choice([{T}, {U}, {T, U}]), had, drawn.choice([None, name.upper()]))
        shares = assign(members, partitions)  # type: ignore[operator]
        given = [one for share_of_one in shares.values() for one in share_of_one]
        wanted = {topic for member in members.values() for topic in member.topics}
        assert sorted(given) == sorted(
            TopicIdPartition(topic, one) for topic in wanted for one in range(partitions[topic])
        ), seed
        assert all(one.topic_id in members[name].topics for name in shares for one in shares[name]), seed
        same = len({member.topics for member in members.values()}) == 1
        sizes = [len(one) for one in shares.values()]
        assert assign is ranges or not same or max(sizes) - min(sizes) <= 1, seed


def test_range_gives_runs_of_neighbours_and_orders_static_members_by_their_names() -> None:
    members = {"b": of({T, U}), "a": of({T}), "z": of({T}, instance="first")}
    assert ranges(members, {T: 5, U: 2}) == {
        "z": share(0, 1), "a": share(2, 3), "b": share(4) | share(0, 1, topic=U),
    }  # fmt: skip
