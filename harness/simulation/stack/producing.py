"""A producer in virtual time that behaves as librdkafka does for :mod:`harness.clients.sender`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import NamedTuple, cast

from confluent_kafka import KafkaError

from harness.broker.codecs import CODECS, deflate
from harness.client_ports import PLAIN, Answered, Manner, not_recorded
from harness.clients.sender import classified
from harness.history.sends import Answer
from harness.model import TopicPartition
from harness.payload import ProducerRecord
from harness.simulation.stack.client import Call, Client, Silence
from harness.simulation.stack.tasks import Window, run_all
from harness.wire.batches import Record, build
from harness.wire.keys import ApiKey
from harness.wire.messages.coordination import InitProducerIdRequest, InitProducerIdResponse
from harness.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

_PRODUCE_VERSION = 9
_INIT_PRODUCER_ID_VERSION = 4
_BACKOFF_S = 0.1
_IDENTIFIED_TIMEOUT_S = 0.2
"""How long one broker may take to give out a producer id: another is asked while there is time left to send."""

_MOST_NUMBERED = 5
"""How many requests with numbered batches may be under way: a leader remembers no more."""

_ANY_NUMBER = 1_000_000
"""librdkafka's limit for others."""

_NS_PER_S = 1_000_000_000
_NO_ID = -1

_STALE = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
    }
)
"""After these librdkafka looks for the leader and retries until its time is up, whatever number of retries it has."""

_TRANSIENT = frozenset(
    {
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.KAFKA_STORAGE_ERROR,
    }
)
"""After these it sends again as long as it has retries."""


_SILENT = MappingProxyType(
    {
        Silence.REFUSED: KafkaError._MSG_TIMED_OUT,  # noqa: SLF001 (librdkafka's own codes begin with an underscore)
        Silence.LOST: KafkaError._TRANSPORT,  # noqa: SLF001
        Silence.TIMED_OUT: KafkaError._MSG_TIMED_OUT,  # noqa: SLF001
    }
)


class _Attempt(NamedTuple):
    """What came of a batch: an error (0: none), where it was appended, and at which try."""

    error: int
    base_offset: int = -1
    tries: int = 1


class _Request(NamedTuple):
    """What one request sends: as which producer id, and until when."""

    partition: TopicPartition
    batch: Sequence[ProducerRecord]
    identity: int
    deadline_ns: int


def framed(batch: Sequence[ProducerRecord]) -> list[Record]:
    """The records of a batch as the wire has them."""
    return [Record(at, one.timestamp_ms, one.key, one.value, tuple(one.headers)) for at, one in enumerate(batch)]


def _unanswered() -> Answer:
    return Answer("info", error="_NO_DELIVERY_REPORT")


class Producer:
    """One producer. One that numbers its batches and has to give one up goes on in the next epoch of its id (KIP-360).

    One whose oldest batch under way is out of sequence fails as a whole, as librdkafka's do, and a new one with
    another id takes its place. A younger one is sent again: what comes before it has not been appended yet. One that
    its leader does not know any more counts from 0 in its next epoch, unless the batch may have been stored before.

    Args:
        client: its connections.
        acks: -1 (all in-sync replicas), 1 or 0.
        timeout_s: how long to wait for the answer to one batch.
        manner: how it sends; by default once only.
    """

    def __init__(self, client: Client, acks: int, timeout_s: float, manner: Manner = PLAIN) -> None:
        self._client = client
        self._acks = acks
        self._timeout_s = timeout_s
        self._manner = manner
        self._id = self._epoch = _NO_ID
        self._sequences: dict[TopicPartition, int] = {}
        self._under_way: dict[TopicPartition, list[object]] = defaultdict(list)
        self._window = Window(manner.in_flight or (_MOST_NUMBERED if manner.idempotent else _ANY_NUMBER))

    async def send_batch(
        self, partition: TopicPartition, batch: Sequence[ProducerRecord], answered: Answered = not_recorded
    ) -> list[Answer]:
        """See :class:`harness.client_ports.Producer`."""
        deadline_ns = self._client.world.now_ns + round(self._timeout_s * _NS_PER_S)
        if self._manner.idempotent and not await self._identified(deadline_ns):
            late = self._late()
            answers = [_unanswered() if late is None else classified(KafkaError(late.error), None)] * len(batch)
            answered(range(len(batch)), answers)
            return answers
        size, identity, found = self._manner.batch, self._id, [_unanswered()] * len(batch)

        async def send(part: range) -> None:
            request = _Request(partition, batch[part.start : part.stop], identity, deadline_ns)
            found[part.start : part.stop] = answers = await self._send_in_turn(request)
            answered(part, answers)

        parts = [range(at, min(at + size, len(batch))) for at in range(0, len(batch), size)]
        await run_all([send(part) for part in parts])
        return found

    def close(self) -> None:
        """Hang up; a batch under way ends with ``info``."""
        self._client.close()

    async def _send_in_turn(self, request: _Request) -> list[Answer]:
        """Send when few enough requests are under way; its records' answers."""
        records = len(request.batch)
        await self._window.enter()
        under_way, mine = self._under_way[request.partition], object()
        under_way.append(mine)
        try:
            attempt = await self._send(request, lambda: under_way[0] is mine)
            if attempt is not None and attempt.error == KafkaError.UNKNOWN_PRODUCER_ID:
                may_be_stored = attempt.tries > 1 or under_way[0] is not mine
                attempt = await self._begin_anew(request, attempt, may_be_stored=may_be_stored)
        finally:
            under_way.remove(mine)
            self._window.leave()
        if attempt is None:
            return [_unanswered()] * records
        if attempt.error:
            self._begin_epoch()
            return [classified(KafkaError(attempt.error), None)] * records
        first = attempt.base_offset
        return [classified(None, first + index if first >= 0 else None) for index in range(records)]

    async def _send(self, request: _Request, is_oldest: Callable[[], bool]) -> _Attempt | None:
        """Send until there is an answer that counts; None when the client was closed before.

        ``is_oldest``: whether nothing else that was sent to the partition before is under way.
        """
        world = self._client.world
        partition, batch, identity, deadline_ns = request
        if identity != self._id:
            return _Attempt(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)  # which its producer has failed with
        sequence = self._sequences.get(partition, 0) if self._manner.idempotent else _NO_ID
        records = build(
            framed(batch), producer_id=self._id, producer_epoch=self._epoch, base_sequence=sequence,
            codec=CODECS[self._manner.compression], deflate=deflate,
        )  # fmt: skip
        self._sequences[partition] = sequence + len(batch)
        retries = max(self._manner.retries, 1 if self._manner.idempotent else 0)
        last = _Attempt(KafkaError._MSG_TIMED_OUT)  # noqa: SLF001
        tries = 0
        while world.now_ns < deadline_ns:
            tries += 1
            attempt = await self._try(partition, bytes(records), deadline_ns)
            match attempt:
                case None:
                    return None if self._client.is_closed else last
                case Silence.REFUSED:
                    pass
                case _Attempt(error) if error in _STALE:
                    pass
                case _Attempt(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER) if self._manner.idempotent:
                    if is_oldest():
                        self._retire(identity)
                        return attempt
                case _Attempt(error) if error not in _TRANSIENT:
                    return attempt._replace(tries=tries)
                case _ if retries == 0:
                    return attempt if isinstance(attempt, _Attempt) else _Attempt(_SILENT[attempt])
                case _:
                    retries -= 1
            await self._client.sleep(_BACKOFF_S)
        return last

    def _late(self) -> _Attempt | None:
        return None if self._client.is_closed else _Attempt(KafkaError._MSG_TIMED_OUT)  # noqa: SLF001

    async def _try(self, partition: TopicPartition, records: bytes, deadline_ns: int) -> _Attempt | Silence | None:
        """One request; None when the client knows no leader in time, or was closed."""
        leader = await self._client.leader(partition, deadline_ns)
        if leader is None:
            return None
        left_s = (deadline_ns - self._client.world.now_ns) / _NS_PER_S
        timeout_s = min(left_s, self._manner.retry_after_s) if self._manner.retries else left_s
        data = TopicProduceData(partition.topic, partition_data=[PartitionProduceData(partition.partition, records)])
        patience_ms = round(min(left_s, self._manner.request_timeout_s(self._timeout_s)) * 1000)
        request = ProduceRequest(acks=self._acks, timeout_ms=max(1, patience_ms), topic_data=[data])
        call = Call(ApiKey.PRODUCE, _PRODUCE_VERSION, request, timeout_s, has_answer=self._acks != 0)
        answer = await self._client.ask(leader.address, call)
        if answer is Silence.GIVEN_UP:
            return None
        if isinstance(answer, Silence):
            self._client.forget_leader(partition)
            return answer
        if self._acks == 0:
            return _Attempt(0)
        (result,) = cast("ProduceResponse", answer).responses[0].partition_responses
        if result.error_code:
            self._client.forget_leader(partition)
        return _Attempt(result.error_code, result.base_offset)

    def _begin_epoch(self) -> None:
        """Count from 0 again: the leader may or may not append the batches that were given up.

        As librdkafka and Kafka's own client do, without a request to the broker.
        """
        if self._id != _NO_ID:
            self._epoch += 1
            self._sequences.clear()

    async def _begin_anew(self, request: _Request, attempt: _Attempt, *, may_be_stored: bool) -> _Attempt | None:
        """The leader does not know the producer any more: it counts from 0, unless that might store a batch twice."""
        if may_be_stored:
            self._retire(request.identity)
            return attempt
        self._begin_epoch()
        return await self._send(request, lambda: True)

    def _retire(self, identity: int) -> None:
        """A new producer takes the place of the one of that id, unless one has done so."""
        if self._id == identity:
            self._id = _NO_ID
            self._sequences.clear()

    async def _identified(self, deadline_ns: int) -> bool:
        """Get a producer id, unless there is one; False when the time is up before."""
        while self._id == _NO_ID:
            if self._client.is_closed or self._client.world.now_ns >= deadline_ns:
                return False
            call = Call(
                ApiKey.INIT_PRODUCER_ID, _INIT_PRODUCER_ID_VERSION, InitProducerIdRequest(), _IDENTIFIED_TIMEOUT_S
            )
            answer = await self._client.ask_anybody(call)
            if self._id != _NO_ID:  # another task was faster
                break
            if isinstance(answer, InitProducerIdResponse) and not answer.error_code:
                self._id, self._epoch = answer.producer_id, answer.producer_epoch
            else:
                await self._client.sleep(_BACKOFF_S)
        return True
