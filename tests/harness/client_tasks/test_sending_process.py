"""What processes send, and what the history has of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness.client_ports import Answered, ClientContext, Clients, not_recorded
from harness.client_tasks.sending_process import SendingProcesses
from harness.clock import SystemClock
from harness.history.kept_recorder import KeptRecorder
from harness.history.sends import Answer, Sends
from harness.model import TopicPartition
from harness.payload import ProducerRecord, decode
from harness.simulation.stack.tasks import Task

LEDGER = TopicPartition("ledger", 1)
TIMED_OUT = Answer("info", error="_MSG_TIMED_OUT")


class PlayedProducer:
    """Answers as it is to, the last record first."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.taken: list[ProducerRecord] = []

    async def send_batch(
        self, partition: TopicPartition, batch: Sequence[ProducerRecord], answered: Answered = not_recorded
    ) -> list[Answer]:
        self.taken += batch
        for place in reversed(range(len(batch))):
            answered([place], [self.answers[place]])
        return self.answers

    def close(self) -> None:
        raise AssertionError("a process does not close its producer")


class Sending:
    """Processes, what they send with, and what is recorded."""

    def __init__(self, *, in_order: bool = False) -> None:
        def no_clients() -> Clients:
            raise AssertionError("the producer is there")

        self.recorder = KeptRecorder("r", SystemClock())
        self.producer = PlayedProducer()
        context = ClientContext(no_clients, [LEDGER], self.recorder, seed=1)
        self.processes = SendingProcesses(context, in_order=in_order)

    def send(self, *answers: Answer, size: int = 0) -> list[tuple[int, Answer]]:
        self.producer.answers = list(answers)
        sent = Task(self.processes.send(self.producer, LEDGER, [size] * len(answers), -1, 5_000)).result()
        assert sent is not None
        return sent

    def rows(self, kind: str) -> list[dict[str, Any]]:
        self.recorder.flush()
        return [row for row in self.recorder.rows if row["type"] == kind]


def test_each_process_sends_values_of_its_own_and_one_that_ended_with_info_ends() -> None:
    sending = Sending()
    sending.send(Answer("ok", 0), TIMED_OUT, Answer("fail", error="X"))
    assert not sending.processes.are_usable
    sent = sending.send(Answer("ok", 1), Answer("ok", 2), Answer("ok", 3))
    assert sending.processes.are_usable
    processes = [row["process"] for row in sending.rows("invoke")]
    assert processes == [0, 1, 2, 0, 2, 3]
    assert [value for value, _ in sent] == [1, (2 << 32) + 1, 3 << 32]
    assert [answer.offset for _, answer in sent] == [1, 2, 3]
    assert len({row["op"] for row in sending.rows("invoke")}) == 6


def test_records_are_dated_one_after_the_other_and_padded() -> None:
    sending = Sending()
    sending.send(Answer("ok", 0), Answer("ok", 1), size=200)
    assert [row["timestamp_ms"] for row in sending.rows("invoke")] == [5_000, 4_999]
    texts = [decode(record.value) for record in sending.producer.taken]
    assert [(text.value, text.create_time_ms) for text in texts if text] == [(0, 5_000), (1 << 32, 4_999)]
    assert [len(record.value or b"") for record in sending.producer.taken] == [200, 200]


def test_sends_in_order_are_one_operation_of_one_process() -> None:
    sending = Sending(in_order=True)
    sending.send(Answer("ok", 0), Answer("ok", 1))
    sending.send(Answer("ok", 2), TIMED_OUT)
    sending.send(Answer("ok", 3), Answer("ok", 4))
    steps = [(row["process"], row["op"], row["mop"], row["value"]) for row in sending.rows("invoke")]
    other = 1 << 32
    assert steps == [
        (0, 0, 0, 0), (0, 0, 1, 1), (0, 2, 0, 2), (0, 2, 1, 3), (1, 4, 0, other), (1, 4, 1, other + 1),
    ]  # fmt: skip
    ended = [(row["op"], row["mop"], row["offset"]) for row in sending.rows("ok")]
    assert ended == [(0, 1, 1), (0, 0, 0), (2, 0, 2), (4, 1, 4), (4, 0, 3)], "each when its answer came"


def test_one_process_for_some_of_several_sends_is_refused() -> None:
    with pytest.raises(AssertionError, match="a process for each record"):
        Sends(LEDGER, [1, 2, 3], [1, 2], -1, [1, 2, 3])
