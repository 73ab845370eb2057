"""Group consumers of real clients that speak the consumer protocol (KIP-848), unchanged, against real processes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.broker.cluster import Cluster

PATIENCE_S = 30.0
PARTITIONS = 4


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """Four partitions with ten records each: ``<partition>.<number>``."""
    name = f"k-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(name, [[number % 3, (number + 1) % 3, (number + 2) % 3] for number in range(PARTITIONS)])
    for partition in range(PARTITIONS):
        cluster.produce(name, [b"%d.%d" % (partition, number) for number in range(10)], partition=partition)
    return name


class Member:
    """A librdkafka consumer; ``assigned`` are its partitions, ``read`` the values that it has got."""

    def __init__(self, cluster: Cluster, topic: str, group: str | None = None, **settings: Any) -> None:
        from confluent_kafka import Consumer

        self.assigned: set[int] = set()
        self.read: list[bytes | None] = []
        self.errors: list[str] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": group or topic,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **settings,
            }
        )
        self._consumer.subscribe([topic], on_assign=self._gained, on_revoke=self._gave_up, on_lost=self._gave_up)

    def _gained(self, _: Any, partitions: list[Any]) -> None:
        self.assigned |= {one.partition for one in partitions}

    def _gave_up(self, _: Any, partitions: list[Any]) -> None:
        self.assigned -= {one.partition for one in partitions}

    def poll(self) -> None:
        message = self._consumer.poll(0.1)
        error = None if message is None else message.error()
        if error is not None:
            self.errors.append(error.name())
        elif message is not None:
            self.read.append(message.value())

    def commit(self) -> list[Any]:
        return self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


def until(condition: Callable[[], bool], *members: Member) -> None:
    """Poll ``members`` until ``condition``."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, [(member.assigned, member.errors) for member in members]
        for member in members:
            member.poll()


@pytest.mark.parametrize("assignor", ["uniform", "range", None])
def test_members_share_the_partitions_and_take_over_from_one_that_leaves(
    cluster: Cluster, topic: str, assignor: str | None
) -> None:
    settings = {} if assignor is None else {"group.remote.assignor": assignor}
    first = Member(cluster, topic, **settings)
    until(lambda: first.assigned == {0, 1, 2, 3}, first)
    second = Member(cluster, topic, **settings)
    until(lambda: len(first.assigned) == len(second.assigned) == 2, first, second)
    assert first.assigned | second.assigned == {0, 1, 2, 3}
    until(lambda: len(set(first.read + second.read)) == 10 * PARTITIONS, first, second)
    assert {one.error for one in (*first.commit(), *second.commit())} == {None}
    second.close()
    until(lambda: first.assigned == {0, 1, 2, 3}, first)
    first.close()


def test_a_group_goes_on_where_it_has_committed_whichever_protocol_its_next_members_speak(
    cluster: Cluster, topic: str
) -> None:
    for number, protocol in enumerate(("consumer", "classic", "consumer")):
        member = Member(cluster, topic, **{"group.protocol": protocol})
        expected = 10 * PARTITIONS if number == 0 else 1
        until(lambda member=member, expected=expected: len(member.read) == expected, member)  # type: ignore[misc]
        assert {one.error for one in member.commit()} == {None}
        member.close()
        cluster.produce(topic, [b"new"], partition=number)


def test_a_static_member_that_starts_again_gets_its_partitions(cluster: Cluster, topic: str) -> None:
    first, second = (Member(cluster, topic, **{"group.instance.id": name}) for name in ("i", "j"))
    until(lambda: len(first.assigned) == len(second.assigned) == 2, first, second)
    before, kept = set(second.assigned), set(first.assigned)
    second.close()
    again = Member(cluster, topic, **{"group.instance.id": "j"})
    until(lambda: bool(again.assigned), first, again)
    assert (again.assigned, first.assigned) == (before, kept)
    again.close()
    first.close()


def test_members_of_the_other_protocol_are_refused_while_the_group_has_members(cluster: Cluster, topic: str) -> None:
    first = Member(cluster, topic)
    until(lambda: bool(first.assigned), first)
    other = Member(cluster, topic, **{"group.protocol": "classic"})
    until(lambda: bool(other.errors), first, other)
    assert "INCONSISTENT_GROUP_PROTOCOL" in other.errors
    other.close()
    first.close()


def test_a_pattern_subscribes_to_all_topics_that_it_matches(cluster: Cluster, topic: str) -> None:
    member = Member(cluster, f"^{topic[:-1]}.$", group=topic)
    until(lambda: member.assigned == {0, 1, 2, 3}, member)
    member.close()


def test_an_operator_sees_the_group(cluster: Cluster, topic: str) -> None:
    from confluent_kafka import ConsumerGroupState, ConsumerGroupType
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    member = Member(cluster, topic)
    until(lambda: len(member.read) == 10 * PARTITIONS, member)
    member.commit()
    described = admin.describe_consumer_groups([topic])[topic].result()
    (one,) = described.members
    assert (described.state, described.type) == (ConsumerGroupState.STABLE, ConsumerGroupType.CONSUMER)
    assert len(one.assignment.topic_partitions) == len(one.target_assignment.topic_partitions) == PARTITIONS
    listed = admin.list_consumer_groups(types={ConsumerGroupType.CONSUMER}).result().valid
    assert topic in {group.group_id for group in listed}
    with pytest.raises(Exception, match="NON_EMPTY_GROUP"):
        admin.delete_consumer_groups([topic])[topic].result()
    member.close()
    admin.delete_consumer_groups([topic])[topic].result()


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster that a test may break."""
    cluster = Cluster(tmp_path, broker_session_timeout_ms=3_000)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def test_a_group_survives_its_coordinator(doomed: Cluster) -> None:
    doomed.create_topic("t", [[1, 2, 0], [2, 1, 0], [1, 2, 0]])
    first, second = Member(doomed, "t"), Member(doomed, "t")
    until(lambda: sorted(map(len, (first.assigned, second.assigned))) == [1, 2], first, second)
    for partition in range(3):
        doomed.produce("t", [b"%d.%d" % (partition, number) for number in range(10)], partition=partition)
    until(lambda: len(first.read) + len(second.read) == 30, first, second)
    assert {one.error for one in (*first.commit(), *second.commit())} == {None}
    doomed.kill(0)  # the first replica of __consumer_offsets: it coordinates
    doomed.produce("t", [b"new"], partition=0)
    until(lambda: b"new" in first.read + second.read, first, second)
    newcomer = Member(doomed, "t")
    members = (first, second, newcomer)
    until(lambda: all(len(one.assigned) == 1 for one in members), *members)
    assert not newcomer.read or newcomer.read == [b"new"]
    for member in members:
        member.close()
