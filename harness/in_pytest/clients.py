"""confluent-kafka's Producer and Consumer for a test, which record what they do."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from harness.errors import UsageError
from harness.in_pytest.recording import Recording
from harness.model import Offset, TopicPartition
from harness.orders import ALL_ACKS

_ACKS = {"all": ALL_ACKS, "-1": ALL_ACKS, "0": 0, "1": 1}
_CRC_OF_KEY = frozenset({"consistent_random", "consistent"})
"""librdkafka's partitioners that take CRC-32 of the key, the first of them by default."""

_RETRY_BACKOFF_MS = 100
"""librdkafka's ``retry.backoff.ms``."""


class RecordingProducer(confluent_kafka.Producer):
    """A Producer that gives each record a header, by which it is known again, and chooses the partition itself.

    It chooses as librdkafka does by default: by CRC-32 of the key, and at random without one.

    Raises:
        UsageError: it is transactional, or has another partitioner.
    """

    def __init__(self, history: Recording, config: Mapping[str, Any]) -> None:
        self._history = history
        self._idempotent = _is_set(config.get("enable.idempotence"))
        acks = str(config.get("acks", config.get("request.required.acks", "all"))).lower()
        if acks not in _ACKS:
            raise UsageError(f"acks={acks} is none of all, 1 and 0.")
        self._acks = _ACKS[acks]
        if config.get("transactional.id"):
            raise UsageError("transactions are not recorded.", "Leave transactional.id out.")
        self._partitioner = str(config.get("partitioner", "consistent_random"))
        self._resends_after_s = float(config.get("retry.backoff.ms", _RETRY_BACKOFF_MS)) / 1000
        super().__init__({**history.shared, **config, "bootstrap.servers": history.shared["bootstrap.servers"]})

    def produce(  # noqa: PLR0917 (as confluent-kafka has it)
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = -1,
        callback: Any = None,
        on_delivery: Any = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """See ``confluent_kafka.Producer.produce``."""
        content, name = _bytes(value), _bytes(key)
        place = self._partition(topic, name) if partition < 0 else partition
        sent = self._history.sent(
            topic, place, content, name, _headers(headers), acks=self._acks,  # type: ignore[arg-type]
            idempotent=self._idempotent, sender=id(self), resends_after_s=self._resends_after_s,
        )  # fmt: skip
        answer = on_delivery or callback

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset = message.offset()
                self._history.acknowledged(sent, None if offset is None or offset < 0 else Offset(offset))
            else:
                self._history.unanswered(sent, error.name())
            if answer is not None:
                answer(error, message)

        try:
            super().produce(
                topic, content, name, place, on_delivery=delivered, timestamp=timestamp, headers=[*sent.headers]
            )
        except BaseException as refused:
            self._history.failed(sent, _name(refused))
            raise

    def produce_batch(self, *_: Any, **__: Any) -> int:
        """Refused.

        Raises:
            UsageError: always.
        """
        raise UsageError("produce_batch is not recorded.", "Send each record by produce.")

    def _partition(self, topic: str, key: bytes | None) -> int:
        if self._partitioner not in _CRC_OF_KEY:
            raise UsageError(
                f"partitioner {self._partitioner!r} is not known to the recording producer.",
                "Name the partition in produce(), or leave the partitioner out.",
            )
        number = max(1, self._history.partitions.get(topic, 1))
        return zlib.crc32(key or b"") % number if key or self._partitioner == "consistent" else random.randrange(number)


class RecordingConsumer(confluent_kafka.Consumer):
    """A Consumer that records what its polls are given; what it commits is not recorded."""

    def __init__(self, history: Recording, config: Mapping[str, Any]) -> None:
        self._history = history
        self._group = str(config.get("group.id", "test"))
        self._isolation = str(config.get("isolation.level", "read_committed"))
        self._process = history.context.new_process()
        self._op: int | None = None
        own = {"group.id": self._group, **config, "bootstrap.servers": history.shared["bootstrap.servers"]}
        super().__init__({**history.shared, **own})

    def assign(self, partitions: Sequence[Any]) -> None:
        """See ``confluent_kafka.Consumer.assign``."""
        super().assign(list(partitions))
        if self._op is None:  # and not within a rebalance
            self._begin("assign", partitions)

    def incremental_assign(self, partitions: Sequence[Any]) -> None:
        """See ``confluent_kafka.Consumer.incremental_assign``."""
        super().incremental_assign(list(partitions))
        if self._op is None:
            self._begin("assign", self.assignment())

    def seek(self, partition: Any) -> None:
        """See ``confluent_kafka.Consumer.seek``; another process of the history goes on from there."""
        super().seek(partition)
        self._begin("assign", self.assignment())

    def subscribe(
        self, topics: Sequence[str], on_assign: Any = None, on_revoke: Any = None, on_lost: Any = None
    ) -> None:
        """See ``confluent_kafka.Consumer.subscribe``."""
        super().subscribe(
            list(topics),
            on_assign=self._noted("assigned", on_assign),
            on_revoke=self._noted("revoked", on_revoke),
            on_lost=self._noted("lost", on_lost),
        )
        self._begin("subscribe", ())

    def poll(self, timeout: float = -1) -> Message | None:
        """See ``confluent_kafka.Consumer.poll``."""
        messages = self._polled(lambda: [one for one in [super(RecordingConsumer, self).poll(timeout)] if one])
        return messages[0] if messages else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """See ``confluent_kafka.Consumer.consume``."""
        return self._polled(lambda: super(RecordingConsumer, self).consume(num_messages, timeout))

    def _polled(self, poll: Callable[[], list[Message]]) -> list[Message]:
        if not self._history.open:
            return poll()
        op = self._op = self._history.poll_begun(self._process, self._group, self._isolation)
        try:
            messages = poll()
        except BaseException as refused:
            self._history.context.recorder.poll_failed(op, _name(refused))
            raise
        finally:
            self._op = None
        errors = [error for one in messages if (error := one.error()) is not None]
        given = [one for one in messages if one.error() is None]
        real = [error for error in errors if error.code() != KafkaError._PARTITION_EOF]  # noqa: SLF001 (librdkafka's own)
        if real and not given:
            self._history.context.recorder.poll_failed(op, real[0].name())
        else:
            self._history.poll_ended(op, given)
        if real:
            self._process = self._history.context.new_process()
        return messages

    def _begin(self, f: Any, partitions: Sequence[Any]) -> None:
        """Go on as a new process: the position is another one now."""
        if self._history.open:
            recorder = self._history.context.recorder
            self._process = self._history.context.new_process()
            group = self._group if f == "subscribe" else None
            recorder.complete(recorder.invoke(self._process, f, _places(partitions), group), "ok")

    def _noted(self, change: Any, callback: Callable[..., Any] | None) -> Callable[..., Any]:
        def noted(consumer: Any, partitions: Sequence[Any]) -> None:
            if self._op is not None and self._history.open:
                self._history.context.recorder.rebalance(self._op, change, _places(partitions))
            if callback is not None:
                callback(consumer, partitions)

        return noted


def _places(partitions: Sequence[Any]) -> list[TopicPartition]:
    return [TopicPartition(one.topic, one.partition) for one in partitions]


def _is_set(value: object) -> bool:
    return str(value).lower() == "true"


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _headers(headers: Any) -> list[tuple[str, bytes | None]]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    return [(name, _bytes(text)) for name, text in pairs]


def _name(refused: BaseException) -> str:
    with suppress(AttributeError, IndexError):
        if isinstance(refused, KafkaException):
            return str(refused.args[0].name())
    return type(refused).__name__
