"""Records what a test's own clients do: what they send and are answered, and what they are given."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from confluent_kafka import Message

from harness import payload
from harness.client_ports import ClientContext
from harness.clients.reader import polled_record
from harness.errors import UsageError
from harness.history.recorder import PolledRecord, Sending
from harness.history.sends import Completion
from harness.model import Offset, ProcessId, TopicPartition
from harness.orders import ALL_ACKS
from harness.payload import Headers
from harness.steps import MAX_RECORDS

Acks = Literal["all", -1, 0, 1]


@dataclass(frozen=True, slots=True)
class Sent:
    """A record that a client is about to send.

    Attributes:
        place: the partition that it must be sent to.
        headers: those that it must be sent with; the last one identifies it.
    """

    place: TopicPartition
    headers: list[tuple[str, bytes | None]]
    sender: Sender = field(repr=False)
    process: ProcessId = field(repr=False)
    op: int = field(repr=False)


@dataclass
class Sender:
    """A producer of the test.

    Attributes:
        name: in the run's schedule.
        step: what the schedule has of it.
        idle: processes of the history without an operation under way: each has one at a time.
    """

    name: str
    step: dict[str, Any]
    idle: list[ProcessId] = field(default_factory=list)
    counts: dict[TopicPartition, int] = field(default_factory=dict)


class Recording:
    """The record of what clients do; any thread may record.

    Attributes:
        context: what the run's own clients share with the test's: the recorder, and the numbers of processes.
        steps: the schedule of the run, to which each producer is added with its first record.
        partitions: by topic.
        shared: what every client is configured with: where the brokers are, and where its log goes.
        open: whether records are still recorded.
        strange: the places of polled records that nothing recorded was sent as, the first of each partition.
    """

    def __init__(self, context: ClientContext, steps: list[dict[str, Any]], shared: Mapping[str, Any]) -> None:
        self.context = context
        self.steps = steps
        self.partitions: dict[str, int] = {}
        self.shared = shared
        self.open = True
        self.strange: dict[TopicPartition, Offset] = {}
        self._lock = threading.Lock()
        self._values = itertools.count()
        self._senders: dict[object, Sender] = {}

    # ----------------------------------------------------------------------------------------------- sending

    def sent(
        self,
        topic: str,
        partition: int,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers = (),
        *,
        acks: Acks = "all",
        idempotent: bool = False,
        sender: object = "sender",
        resends_after_s: float | None = None,
    ) -> Sent:
        """A client is about to send a record; it must be sent with the headers of the result.

        Args:
            topic: of the record.
            partition: of the record; it must be sent to that one.
            value: its content.
            key: its key.
            headers: its other headers.
            acks: of the request.
            idempotent: whether the producer numbers its records (KIP-98).
            sender: which producer it is.
            resends_after_s: how soon the producer sends again what is not answered; None: never.

        Raises:
            UsageError: the cluster has no such partition.
        """
        place = TopicPartition(topic, partition)
        if not 0 <= partition < self.partitions.get(topic, 0):
            known = ", ".join(f"{name} ({number})" for name, number in self.partitions.items()) or "none"
            raise UsageError(
                f"a record was to be sent to {place}, and the cluster has no such partition; topics: {known}.",
                "Create it by seawall_cluster.create_topic, or by @pytest.mark.seawall(topics=...).",
            )
        asked = ALL_ACKS if acks == "all" else acks
        with self._lock:
            who = self._sender(sender, asked, idempotent, resends_after_s)
            who.counts[place] = who.counts.get(place, 0) + 1
            who.step["send"]["per_partition"] = min(max(who.counts.values()), MAX_RECORDS)
            process = who.idle.pop() if who.idle else self.context.new_process()
            number = next(self._values)
        marked = payload.mark(number, place, key, value, headers)
        op = self.context.recorder.invoke_send(process, Sending(topic, partition, number, asked))
        return Sent(place, [*headers, (payload.MARK, marked)], who, process, op)

    def acknowledged(self, sent: Sent, offset: Offset | None = None) -> None:
        """The cluster has acknowledged the record, at ``offset``; None with acks=0 alone."""
        self._ended(sent, "ok", offset, None)

    def failed(self, sent: Sent, error: str) -> None:
        """The record was proven never to have been sent, as where the client refused to take it."""
        self._ended(sent, "fail", None, error)

    def unanswered(self, sent: Sent, error: str) -> None:
        """Whether the record was stored is not known: its time is over, or an error came back."""
        self._ended(sent, "info", None, error)

    def _ended(self, sent: Sent, kind: Completion, offset: Offset | None, error: str | None) -> None:
        if not self.open:
            return
        self.context.recorder.complete_send(sent.op, kind, offset, error)
        if kind != "info":  # the record may still be under way, and a process has one operation at a time
            with self._lock:
                sent.sender.idle.append(sent.process)

    def _sender(self, key: object, acks: int, idempotent: bool, resends_after_s: float | None) -> Sender:
        known = self._senders.get((key, acks, idempotent))
        if known is None:
            name = f"producer-{len(self._senders)}"
            send: dict[str, Any] = {
                "per_partition": 1,
                "acks": "all" if acks == ALL_ACKS else acks,
                "expect": "any",
                "producer": name,
            }
            if idempotent:
                send["idempotent"] = True
            elif resends_after_s is not None:
                send |= {"retries": 1, "retry_after_s": resends_after_s}
            known = self._senders[key, acks, idempotent] = Sender(name, {"send": send})
            self.steps.append(known.step)
        return known

    # ----------------------------------------------------------------------------------------------- polling

    def polled(self, messages: Iterable[Message], *, group: str | None = None) -> None:
        """A client has polled, and was given these messages of confluent-kafka; none is recorded, too."""
        self.poll_ended(self.poll_begun(self.context.new_process(), group, None), list(messages))

    def poll_begun(self, process: ProcessId, group: str | None, isolation: str | None) -> int:
        """A client is about to poll; returns the operation's number."""
        return self.context.recorder.invoke_poll(process, final=False, group=group, isolation=isolation)

    def poll_ended(self, op: int, messages: Sequence[Message]) -> None:
        """The poll ``op`` was given ``messages``."""
        records = [polled_record(one) for one in messages]
        for record in records:
            self._note_strange(record)
        self.context.recorder.complete_poll(op, records)

    def _note_strange(self, record: PolledRecord) -> None:
        if record.value is None:
            self.strange.setdefault(TopicPartition(record.topic, record.partition), record.offset)
