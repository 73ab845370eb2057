"""Transactions without a broker: time passes when a test says so, and so are records stored and markers written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from harness.coordination.ports import LogRecord, ProducerIdentity
from harness.coordination.transaction import NUMBERED
from harness.coordination.transaction_records import decoded
from harness.coordination.transactions import Initialising, Transactions
from harness.model import TopicPartition
from tests.harness.coordination.groups_alone import CoordinatorAlone

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
TIMEOUT_MS = 60_000


class TransactionsAlone(CoordinatorAlone):
    """The transactions of one partition, and producers that speak to it.

    ``marking`` are the markers that are not written yet: whose, where, how, and what to call.
    """

    def __init__(self, log: Sequence[LogRecord] = (), max_timeout_ms: int = 900_000) -> None:
        super().__init__(log)
        self.marking: list[tuple[ProducerIdentity, set[TopicPartition], bool, Callable[[], None]]] = []
        self.has_ids = True
        self._ids = 100
        self.transactions = Transactions(self, max_timeout_ms)
        for record in log:
            said = decoded(*record)
            assert said is not None
            self.transactions.replay(*said)
        self.transactions.begin()

    # ------------------------------------------------------------------------------------ ports

    def new_producer_id(self, allocated: Callable[[int | None], None]) -> None:
        self._ids += 1
        self.call_later(0, partial(allocated, self._ids if self.has_ids else None))

    def write_markers(
        self, producer: ProducerIdentity, partitions: Collection[TopicPartition], written: Callable[[], None],
        *, commits: bool,
    ) -> None:  # fmt: skip
        self.marking.append((producer, set(partitions), commits, written))

    # ------------------------------------------------------------------------------------ the test's hand

    def mark_next(self) -> None:
        self.marking.pop(0)[3]()
        self.sleep()

    def successor(self) -> TransactionsAlone:
        """The coordinator that reads this one's log."""
        self.transactions.end()
        return TransactionsAlone(self.log)

    # ------------------------------------------------------------------------------------ requests

    def init(
        self, name: str = "x", timeout_ms: int = TIMEOUT_MS, before: ProducerIdentity | None = None
    ) -> list[tuple[int, ProducerIdentity]]:
        answers: list[tuple[int, ProducerIdentity]] = []
        self.transactions.init_producer(
            Initialising(name, timeout_ms, before, lambda error, who: answers.append((error, who)))
        )
        self.sleep()
        return answers

    def producer(self, name: str = "x", timeout_ms: int = TIMEOUT_MS) -> ProducerIdentity:
        ((error, who),) = self.init(name, timeout_ms)
        assert not error
        return who

    def add(self, who: ProducerIdentity, *partitions: TopicPartition, name: str = "x", version: int = 0) -> list[int]:
        answers: list[int] = []
        self.transactions.add(name, who, partitions or (A,), answers.append, version=version)
        self.sleep()
        return answers

    def end(self, who: ProducerIdentity, *, commits: bool, name: str = "x") -> list[int]:
        answers: list[int] = []
        self.transactions.end_transaction(name, who, lambda error, _: answers.append(error), commits=commits)
        self.sleep()
        return answers

    def end_numbered(
        self, who: ProducerIdentity, *, commits: bool, name: str = "x"
    ) -> list[tuple[int, ProducerIdentity]]:
        """Like :meth:`end`, with transaction version 2; also who the producer is then."""
        answers: list[tuple[int, ProducerIdentity]] = []
        self.transactions.end_transaction(
            name, who, lambda error, after: answers.append((error, after)), commits=commits, version=NUMBERED
        )
        self.sleep()
        return answers

    def state(self, name: str = "x") -> str:
        known = self.transactions.described(name)
        assert known is not None
        return known.state.title
