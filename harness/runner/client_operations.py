"""Client operations of a schedule: a step becomes an order to the scheduled client, and its result is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from harness.errors import InvalidRun
from harness.model import NodeId, TopicPartition, partition_named
from harness.orders import (
    CommitOrder,
    Consumed,
    ConsumeOrder,
    DeleteOrder,
    Done,
    Pending,
    ScheduledClient,
    SendOrder,
    Sent,
    SpoofedFetchOrder,
)
from harness.runner.reporting import Reporter
from harness.runner.schedule_log import ScheduleLog
from harness.schedule import Step
from harness.steps import Commit, Consume, DeleteRecords, Send, SpoofFetch, Where, meant

ResultT = TypeVar("ResultT")

_ACKS = {"all": -1, 0: 0, 1: 1}

_UNCERTAIN = frozenset({"REQUEST_TIMED_OUT", "_TIMED_OUT", "_TRANSPORT"})
"""Errors after which a leader may have done what it was asked."""


class ClientOperation(Generic[ResultT]):
    """An order under way.

    Attributes:
        path: the step.
        within_s: how long it may take.
        name: the ``as`` of the step: the schedule goes on without waiting; None: it waits.
    """

    def __init__(
        self,
        path: str,
        within_s: float,
        pending: Pending[ResultT],
        check: Callable[[ResultT], None],
        name: str | None = None,
    ) -> None:
        self.path = path
        self.within_s = within_s
        self.name = name
        self._pending = pending
        self._check = check
        self._checked = False

    def missing(self) -> list[str]:
        """What is not yet as it should be, one phrase each; when the result is there, it is checked once.

        Raises:
            InvalidRun: it is not what the schedule needs.
        """
        if not self._checked:
            result = self._pending.result()
            if result is None:
                return [f"{self.path}: not every answer has come"]
            self._checked = True
            self._check(result)
        return []


AnyOperation = ClientOperation[Sequence[Sent]] | ClientOperation[Consumed] | ClientOperation[Done]
"""What a step may begin."""


class ClientOperations:
    """Begins what the schedule has the clients of one run do."""

    def __init__(
        self, partitions: Sequence[TopicPartition], client: ScheduledClient, schedule_log: ScheduleLog, report: Reporter
    ) -> None:
        self._partitions = partitions
        self._client = client
        self._schedule_log = schedule_log
        self._report = report

    def begin(self, step: Step, path: str) -> AnyOperation:
        """Begin what ``step``, which is of a kind for clients, asks for."""
        match step:
            case Step(send=Send() as send):
                return self._send(send, path)
            case Step(consume=Consume() as consume):
                return self._consume(consume, path)
            case Step(commit=Commit() as commit):
                return self._commit(commit, path)
            case Step(delete_records=DeleteRecords() as delete):
                return self._delete(delete, path)
            case Step(spoof_fetch=SpoofFetch() as spoof):
                return self._spoof(spoof, path)
        raise AssertionError(f"{path}: no client does {step.kind}")

    def _meant(self, where: Where) -> tuple[TopicPartition, ...]:
        return meant(self._partitions, where)

    def _send(self, send: Send, path: str) -> ClientOperation[Sequence[Sent]]:
        order = SendOrder(
            self._meant(send), send.count, _ACKS[send.acks], send.within_s, send.batch, round(send.age_s * 1000),
            send.retries, send.retry_after_s, send.producer, send.idempotent, send.transaction,
            send.transaction_version, send.transactional_id,
        )  # fmt: skip
        names = self._schedule_log.sending(order.partitions, send)

        def check(answers: Sequence[Sent]) -> None:
            self._schedule_log.answered(send.producer, names, answers)
            acknowledged = sum(answer.kind == "ok" for answer in answers)
            # The end of a transaction answers for what was sent before in it, too.
            every = max(send.count * len(order.partitions), len(answers))
            wanted = {"ok": every, "refused": 0, "any": acknowledged}[send.expect]
            if acknowledged != wanted:
                errors = ", ".join(sorted({answer.error for answer in answers if answer.error})) or "no error"
                raise InvalidRun(f"{path}: {acknowledged} of {wanted} records were acknowledged ({errors}).")

        self._report(f"sending {send.count} to {_listed(order.partitions)} with acks={send.acks}")
        return ClientOperation(path, send.within_s, self._client.send(order), check, send.name)

    def _consume(self, consume: Consume, path: str) -> ClientOperation[Consumed]:
        order = ConsumeOrder(
            consume.group, self._meant(consume), consume.start, consume.reset,
            consume.checks_epochs, consume.commit, consume.within_s, round((consume.age_s or 0) * 1000),
        )  # fmt: skip

        def check(consumed: Consumed) -> None:
            self._schedule_log.consumed(consume.group, consumed)
            happened = consumed.incident or "ok"
            if consume.expect not in ("any", happened):
                raise InvalidRun(f"{path}: what happened to the consumer is {happened!r}, not {consume.expect!r}.")
            for name, expected in consume.delivers.items():
                self._compare(path, partition_named(name), expected, consumed)

        self._report(f"a member of group {consume.group} reads {_listed(order.partitions)}")
        return ClientOperation(path, consume.within_s, self._client.consume(order), check)

    def _compare(self, path: str, partition: TopicPartition, expected: Sequence[str], consumed: Consumed) -> None:
        names = self._schedule_log.names(partition)
        given = [names.get(value, "?") if value is not None else "?" for value in consumed.values.get(partition, ())]
        if given != list(expected):
            raise InvalidRun(
                f"{path}: of {partition} it was given {', '.join(given) or 'nothing'}, "
                f"not {', '.join(expected) or 'nothing'}."
            )

    def _commit(self, commit: Commit, path: str) -> ClientOperation[Done]:
        offsets = {partition_named(name): offset for name, offset in commit.offsets.items()}
        order = CommitOrder(commit.group, offsets, commit.leader_epoch, commit.within_s)
        what = ", ".join(f"{name} {offset}" for name, offset in commit.offsets.items())
        self._report(f"committing for group {commit.group}: {what}")

        def check(done: Done) -> None:
            if done.error is None:
                self._schedule_log.committed(commit.group, offsets)
            _require(path, commit.expect, done)

        return ClientOperation(path, commit.within_s, self._client.commit(order), check)

    def _delete(self, delete: DeleteRecords, path: str) -> ClientOperation[Done]:
        before = delete.before if isinstance(delete.before, int) else None
        order = DeleteOrder(self._meant(delete), before, delete.within_s)
        self._report(f"deleting what is before {delete.before} of {_listed(order.partitions)}")
        return ClientOperation(
            path, delete.within_s, self._client.delete_records(order),
            lambda done: _require_of_deletion(path, delete.expect, done),
        )  # fmt: skip

    def _spoof(self, spoof: SpoofFetch, path: str) -> ClientOperation[Done]:
        order = SpoofedFetchOrder(
            NodeId(spoof.to), NodeId(spoof.replica), self._meant(spoof), spoof.offset,
            spoof.leader_epoch, spoof.last_fetched_epoch, spoof.within_s,
        )  # fmt: skip
        self._report(f"fetching offset {spoof.offset} from broker {spoof.to} as if from broker {spoof.replica}")
        return ClientOperation(
            path, spoof.within_s, self._client.spoof_fetch(order), lambda done: _require(path, "ok", done)
        )


def _require_of_deletion(path: str, expect: str, done: Done) -> None:
    """A leader that has not answered in time has not refused: it deletes first, and then waits for its followers."""
    if expect == "refused" and done.error in _UNCERTAIN:
        raise InvalidRun(f"{path}: the answer is {done.error}, which does not say that the leader refused.")
    _require(path, expect, done)


def _require(path: str, expect: str, done: Done) -> None:
    if (expect == "ok" and done.error) or (expect == "refused" and done.error is None):
        raise InvalidRun(f"{path}: the answer is {done.error or 'success'}, not {expect}.")


def _listed(partitions: Sequence[TopicPartition]) -> str:
    return ", ".join(map(str, partitions)) if len(partitions) < 4 else f"{len(partitions)} partitions"
