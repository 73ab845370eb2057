"""A member over librdkafka: what it may commit, and where it begins, by the callbacks of a scripted consumer."""

from __future__ import annotations

import logging
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest
from confluent_kafka import OFFSET_INVALID, TIMESTAMP_CREATE_TIME, Consumer
from confluent_kafka import TopicPartition as Assigned

from harness.client_ports import LEFT_UNKNOWN, Begins, CommittedOffset
from harness.client_properties import Access
from harness.clients import group
from harness.clients import member as module
from harness.clients.group import generation_of
from harness.clients.member import GroupConsumer
from harness.errors import EnvironmentFault
from harness.history.recorder import Change
from harness.membership import Membership
from harness.model import NO_GENERATION, TopicPartition

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


class Message:
    """What a poll delivers."""

    def __init__(self, partition: int, offset: int) -> None:
        self._place = ("t", partition, offset)

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return self._place[0]

    def partition(self) -> int:
        return self._place[1]

    def offset(self) -> int:
        return self._place[2]

    def leader_epoch(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, 1

    def key(self) -> None:
        return None

    value = key

    def headers(self) -> None:
        return None


class ScriptedConsumer:
    """Its next ``consume`` does what ``script`` says and returns what that returns."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.script: Callable[[], list[Message]] = list
        self.metadata = b""
        self.closing = False
        self.assigned: list[tuple[str, list[tuple[int, int]]]] = []

    def subscribe(self, topics: Sequence[str], **callbacks: Callable[[Any, list[Assigned]], None]) -> None:
        self.topics, self.callbacks = topics, callbacks

    def call(self, name: str, *partitions: int) -> None:
        self.callbacks[name](self, [Assigned("t", number) for number in partitions])

    def consume(self, most: int, timeout_s: float) -> list[Message]:
        return self.script()

    def consumer_group_metadata(self) -> bytes:
        assert not self.closing, "librdkafka may never answer"
        return self.metadata

    def close(self) -> None:
        self.closing = True
        self.call("on_revoke", 0)

    def assign(self, where: list[Assigned]) -> None:
        self.assigned.append(("assign", [(one.partition, one.offset) for one in where]))

    def incremental_assign(self, where: list[Assigned]) -> None:
        self.assigned.append(("incremental_assign", [(one.partition, one.offset) for one in where]))

    def incremental_unassign(self, partitions: list[Assigned]) -> None:
        self.assigned.append(("incremental_unassign", [(one.partition, one.offset) for one in partitions]))


class Script:
    """A member, its scripted consumer, and the rebalances that the consumer has called back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, begins: Begins | None, assignor: Any = "range") -> None:
        monkeypatch.setattr(module, "Consumer", ScriptedConsumer)
        self.changes: list[tuple[Change, list[int]]] = []

        def rebalanced(change: Change, partitions: Sequence[TopicPartition]) -> Begins | None:
            self.changes.append((change, [name.partition for name in partitions]))
            return begins

        membership = Membership("g", [FIRST, SECOND], assignor, session_timeout_s=2, poll_timeout_s=1)
        self.member = GroupConsumer(
            Access("127.0.0.1:1"),
            "m",
            membership,
            "read_uncommitted",
            rebalanced=rebalanced,
            log=logging.getLogger("test"),
        )
        self.consumer: ScriptedConsumer = self.member._consumer  # type: ignore[assignment]

    def poll(self, *acts: tuple[str, tuple[int, ...]], delivers: Sequence[Message] = ()) -> str | None:
        def script() -> list[Message]:
            for name, partitions in acts:
                self.consumer.call(name, *partitions)
            return list(delivers)

        self.consumer.script = script
        return self.member.poll(10, 0.1).error


IN_SEVEN = b"CGMDv2:" + struct.pack("=i", 7) + b"g\0m\0\1"
"""How librdkafka describes a member of generation 7."""

BEGINS = {FIRST: CommittedOffset(5, 3), SECOND: CommittedOffset(-2)}


def test_it_begins_where_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, BEGINS)
    assert script.poll(("on_assign", (0, 1))) is None
    assert script.consumer.assigned == [("assign", [(0, 5), (1, -2)])]
    assert (script.consumer.topics, script.changes) == (["t"], [("assigned", [0, 1])])
    assert script.consumer.settings["max.poll.interval.ms"] == 2_000  # librdkafka takes no less than the session


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_it_begins_by_itself_where_it_is_told_nothing(monkeypatch: pytest.MonkeyPatch, assignor: str) -> None:
    script = Script(monkeypatch, {SECOND: CommittedOffset(-2)}, assignor)
    assert script.poll(("on_assign", (0, 1)), ("on_revoke", (0,))) is None
    begun = [(0, OFFSET_INVALID), (1, -2)]
    given_up = [("incremental_unassign", [(0, OFFSET_INVALID)])]
    is_range = assignor == "range"
    assert script.consumer.assigned == ([("assign", begun)] if is_range else [("incremental_assign", begun), *given_up])


def test_a_cooperative_member_adds_to_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, BEGINS, "cooperative-sticky")
    script.poll(("on_assign", (0, 1)))
    assert script.consumer.assigned[0][0] == "incremental_assign"


@pytest.mark.parametrize("change", ["on_revoke", "on_lost"])
@pytest.mark.parametrize("begins", [BEGINS, None])
def test_a_cooperative_member_stops_with_what_it_has_begun_with_alone(
    monkeypatch: pytest.MonkeyPatch, change: str, begins: Begins | None
) -> None:
    script = Script(monkeypatch, begins, "cooperative-sticky")
    script.poll(("on_assign", (0, 1)), (change, (1,)))
    name, partitions = script.consumer.assigned[-1]
    assert (name, [number for number, _ in partitions]) == ("incremental_unassign", [1] if begins else [])


def test_it_may_commit_what_it_was_given_of_the_partitions_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, BEGINS)
    script.poll(("on_assign", (0, 1)), delivers=[Message(0, 5), Message(0, 6), Message(1, 0)])
    assert script.member.positions == {FIRST: CommittedOffset(7, 7), SECOND: CommittedOffset(1, 7)}
    script.poll(("on_revoke", (0,)))
    assert script.member.positions == {SECOND: CommittedOffset(1, 7)}
    script.poll(("on_lost", (1,)))
    assert script.member.positions == {}
    assert script.changes == [("assigned", [0, 1]), ("revoked", [0]), ("lost", [1])]


def test_records_that_were_drawn_before_their_partition_was_given_up_are_not_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Script(monkeypatch, BEGINS)
    script.poll(("on_assign", (0, 1)))
    script.poll(("on_revoke", (0,)), delivers=[Message(0, 5), Message(1, 0)])
    assert script.member.positions == {SECOND: CommittedOffset(1, 7)}


def test_its_generation_is_the_one_that_librdkafka_names(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, BEGINS)
    script.consumer.metadata = IN_SEVEN
    assert script.member.generation == 7


def test_a_librdkafka_that_describes_groups_in_another_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, BEGINS)
    script.consumer.metadata = b"CGMDv3:"
    with pytest.raises(EnvironmentFault, match="CGMDv3"):
        _ = script.member.generation


def test_librdkafka_is_not_asked_for_the_generation_of_a_member_that_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, BEGINS)
    script.poll(("on_assign", (0,)))
    script.consumer.metadata = IN_SEVEN
    seen: list[int] = []
    monkeypatch.setattr(script.member, "_rebalanced", lambda change, names: seen.append(script.member.generation))
    script.poll(("on_revoke", (0,)), ("on_assign", (0,)))
    script.member.close()
    assert seen == [7, 7, NO_GENERATION]


def test_a_consumer_that_has_joined_no_group_is_in_no_generation() -> None:
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
    assert generation_of(consumer.consumer_group_metadata()) == NO_GENERATION
    consumer.close()


def test_a_poll_in_which_it_was_not_told_where_to_begin_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, None)
    assert script.poll(("on_assign", (0,))) == LEFT_UNKNOWN
    assert script.consumer.assigned == [("assign", [])]


def test_a_commit_whose_coordinator_does_not_come_back_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    class Waiting:
        def commit(self, **_: object) -> None:
            ended.wait()

    monkeypatch.setattr(group, "PATIENCE_S", 0.05)
    assert group.commit(cast("Consumer", Waiting()), {FIRST: CommittedOffset(1)}) == "_TIMED_OUT"
    ended.set()


def test_a_close_that_does_not_come_to_its_end_is_given_up_and_calls_back_in_vain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script, ended = Script(monkeypatch, BEGINS), threading.Event()
    script.poll(("on_assign", (0, 1)))
    monkeypatch.setattr(module, "PATIENCE_S", 0.01)
    monkeypatch.setattr(module, "CLOSES_WITHIN_S", 0.01)
    monkeypatch.setattr(script.consumer, "close", ended.wait, raising=False)
    script.member.close()
    script.consumer.call("on_revoke", 0, 1)
    script.consumer.call("on_lost", 0, 1)
    script.consumer.call("on_assign", 0)
    assert script.changes == [("assigned", [0, 1])]
    ended.set()
