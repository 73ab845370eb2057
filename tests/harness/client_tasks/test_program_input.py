"""What fills the input of a user's program: unique values, and keys that belong to one partition each."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import pytest

from harness.client_ports import Answered, ClientContext, Clients, not_recorded
from harness.client_tasks import program_input
from harness.client_tasks.program_input import InputProcesses
from harness.clock import SystemClock
from harness.history.kept_recorder import KeptRecorder
from harness.history.sends import Answer, Completion
from harness.identity import KEYS, held
from harness.model import TopicPartition
from harness.payload import ProducerRecord, StoredRecord, judge

PARTITIONS = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]


class Answering:
    """A producer that answers every record in the same way."""

    def __init__(self, kind: Completion = "ok") -> None:
        self.kind: Completion = kind
        self.sent: list[tuple[TopicPartition, ProducerRecord]] = []

    async def send_batch(
        self, partition: TopicPartition, batch: Sequence[ProducerRecord], answered: Answered = not_recorded
    ) -> list[Answer]:
        self.sent += [(partition, record) for record in batch]
        answers = [Answer(self.kind, len(self.sent)) for _ in batch]
        answered(range(len(batch)), answers)
        return answers

    def close(self) -> None:
        """Nothing is open."""


def no_clients() -> Clients:
    raise AssertionError("a process makes no clients")


@pytest.fixture
def context() -> ClientContext:
    return ClientContext(no_clients, PARTITIONS, KeptRecorder("r", SystemClock()), seed=1)


def test_values_are_unique_and_a_key_is_in_one_partition(context: ClientContext) -> None:
    producer, values = Answering(), []
    for _ in range(2):
        process = InputProcesses(context, keys=3)
        for place in PARTITIONS * 20:
            [(value, _)] = asyncio.run(process.send(producer, place, [0], -1, 7))
            values.append(value)
        assert process.are_usable
    assert len(set(values)) == len(values) == len(producer.sent)
    places = defaultdict(set)
    for value, (place, record) in zip(values, producer.sent, strict=True):
        places[record.key].add(place)
        assert held(record.value) == [value]
        assert judge(StoredRecord(record.key, record.value, record.headers, 7), place) == (value, True)
    assert {len(known) for known in places.values()} == {1}
    assert len(places) == 9
    context.recorder.close()
    rows = context.recorder.rows  # type: ignore[attr-defined]
    assert [row["value"] for row in rows if row["type"] == "ok" and row["f"] == "send"] == values


def test_a_process_ends_with_a_send_of_unknown_outcome(context: ClientContext) -> None:
    process = InputProcesses(context, keys=1)
    asyncio.run(process.send(Answering("info"), PARTITIONS[0], [0], -1, 7))
    assert not process.are_usable


def test_a_process_ends_when_its_counter_does(context: ClientContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_input, "_PROCESS_SHIFT", 17)
    process, producer = InputProcesses(context, keys=1), Answering()
    for usable in (True, False):
        asyncio.run(process.send(producer, PARTITIONS[0], [0], -1, 7))
        assert process.are_usable is usable
    assert [held(record.value) for _, record in producer.sent] == [[0], [KEYS]]
