"""Members of groups of real clients, and what the tests of both group protocols ask of them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

from tests.harness.broker.cluster import Cluster

PATIENCE_S = 30.0
PARTITIONS = 4


class Member:
    """A librdkafka consumer in a group.

    Attributes:
        assigned: its partitions.
        read: the values that it has got.
        errors: the names of those that polls ended with.
    """

    def __init__(self, cluster: Cluster, topic: str, group: str | None = None, **settings: Any) -> None:
        from confluent_kafka import Consumer

        self.assigned: set[int] = set()
        self.read: list[bytes | None] = []
        self.errors: list[str] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": group or topic,
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


def filled_topic(cluster: Cluster) -> str:
    """Four partitions with ten records each: ``<partition>.<number>``."""
    name = f"g-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(name, [[number % 3, (number + 1) % 3, (number + 2) % 3] for number in range(PARTITIONS)])
    for partition in range(PARTITIONS):
        cluster.produce(name, [b"%d.%d" % (partition, number) for number in range(10)], partition=partition)
    return name


def lose_the_coordinator(doomed: Cluster, joined: Callable[[], Member]) -> None:
    """Members that ``joined`` makes, of topic ``t``, go on when their coordinator dies, and lose no commit."""
    doomed.create_topic("t", [[1, 2, 0], [2, 1, 0], [1, 2, 0]])
    first, second = joined(), joined()
    until(lambda: sorted(map(len, (first.assigned, second.assigned))) == [1, 2], first, second)
    for partition in range(3):
        doomed.produce("t", [b"%d.%d" % (partition, number) for number in range(10)], partition=partition)
    until(lambda: len(first.read) + len(second.read) == 30, first, second)
    assert {one.error for one in (*first.commit(), *second.commit())} == {None}
    doomed.kill(0)  # the first replica of __consumer_offsets: it coordinates
    doomed.produce("t", [b"new"], partition=0)
    until(lambda: b"new" in first.read + second.read, first, second)
    newcomer = joined()
    members = (first, second, newcomer)
    until(lambda: all(len(one.assigned) == 1 for one in members), *members)
    assert not newcomer.read or newcomer.read == [b"new"]
    for member in members:
        member.close()
