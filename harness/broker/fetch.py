"""Fetch: a leader serves consumers up to the high watermark; followers, whose progress counts, up to the log end.

A consumer that wants committed records is served up to the last stable offset, and learns which transactions have been
aborted in what it gets, so that it can leave their records out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, cast

from harness.broker.injected_bugs import answered, begun, is_refused_at_the_end, served, served_up_to
from harness.broker.kafka_time import kafka_time_ns
from harness.broker.metadata import ClusterMetadata
from harness.broker.partition import Partition
from harness.broker.ports import Network
from harness.broker.purgatory import Purgatory
from harness.broker.replicas import Replicas
from harness.broker.segments import Slice
from harness.broker.session import Request
from harness.clock import Clock
from harness.error_codes import ErrorCode
from harness.model import CLIENTS, NO_EPOCH, NO_OFFSET, NodeId, Offset, TopicPartition
from harness.replication.knobs import Knobs
from harness.replication.messages import AnswerFetch, FetchReceived
from harness.wire.messages.fetch import (
    NO_HIGH_WATERMARK,
    AbortedTransaction,
    DivergingEpoch,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from harness.wire.messages.leadership import LeaderIdAndEpoch
from harness.wire.messages.offsets import READ_COMMITTED

MAX_FETCH_BYTES = 57_671_680
"""Kafka's ``fetch.max.bytes``: one answer carries no more, give or take a batch, even if the client asks for more."""

_TOPIC_IDS_SINCE = 13


class FetchPurgatories(NamedTuple):
    """Where the fetches of consumers and those of followers wait."""

    consumers: Purgatory
    followers: Purgatory


@dataclass(frozen=True, slots=True)
class FetchServices:
    """What a broker needs to serve Fetch."""

    replicas: Replicas
    metadata: ClusterMetadata
    purgatories: FetchPurgatories
    network: Network
    clock: Clock
    knobs: Knobs


class _Part:
    """One partition's part of a fetch; for a follower's also the core's token.

    Attributes:
        found_bytes: how much of the log it could answer at the last look.
    """

    __slots__ = ("answer", "asked", "found_bytes", "name", "partition", "received")

    def __init__(self, name: TopicPartition, asked: FetchPartition, partition: Partition | None) -> None:
        self.name = name
        self.asked = asked
        self.partition = partition
        self.received: FetchReceived | None = None
        self.found_bytes = 0
        self.answer: AnswerFetch

    def judged(self, answer: AnswerFetch) -> None:
        """See :class:`harness.broker.partition.FetchToken`."""
        self.answer = answer


class _Found(NamedTuple):
    """The answer for one partition as of now."""

    part: _Part
    answer: AnswerFetch
    slice: Slice | None


class Fetching:
    """One fetch request until its answer: a waiter in the purgatory.

    Where the request names a partition several times, the last one counts, and the broker answers it once, as in Kafka.
    """

    def __init__(self, services: FetchServices, request: Request) -> None:
        self._services = services
        self._request = request
        self._body = cast("FetchRequest", request.body)
        self._is_holding = False
        fetcher = self._body.replica_state or ReplicaState(self._body.replica_id)
        self._replica = NodeId(fetcher.replica_id) if fetcher.replica_id >= 0 else None
        self._broker_epoch = fetcher.replica_epoch
        self._wants_committed = self._replica is None and self._body.isolation_level == READ_COMMITTED
        self._topics: dict[tuple[str, bytes], dict[int, _Part]] = {}
        for topic in self._body.topics:
            parts = self._topics.setdefault((topic.topic, topic.topic_id), {})
            for asked in topic.partitions:
                name = TopicPartition(self._name(topic), asked.partition)
                parts[asked.partition] = _Part(name, asked, services.replicas.get(name))
        self._parts = [part for parts in self._topics.values() for part in parts.values()]
        self._begun = begun(services.knobs, request.session, (part.name for part in self._parts))
        self._found_bytes = 0

    def start(self) -> None:
        """Answer at once if there is enough data, or no room in the purgatory; otherwise wait."""
        for part in self._parts:
            self._judge(part, first=True)
        found = self._find()
        if self._is_enough(found) or self._body.max_wait_ms <= 0 or not self._parts or not self._park():
            self._answer(found)

    def _park(self) -> bool:
        session = self._request.session
        consumers, followers = self._services.purgatories
        purgatory = consumers if self._replica is None else followers
        self._by_name = {part.name: part for part in self._parts}
        if session.is_abandoned or not purgatory.park(self, self._by_name, self._body.max_wait_ms / 1000):
            return False
        self._request.abandon = partial(self._drop, purgatory)
        if self._replica is None or session.peer == CLIENTS:
            # Answers keep their order, so requests behind this one gain nothing from being read; and a client
            # that sends fetch after fetch cannot make one append answer them all with megabytes each.
            session.hold()
            self._is_holding = True
        return True

    def _drop(self, purgatory: Purgatory) -> None:
        """Stop waiting, and read nothing, because the client has hung up."""
        purgatory.remove(self)
        self._let_go()
        self._request.answer(None)

    def _let_go(self) -> None:
        if self._is_holding:
            self._is_holding = False
            self._request.session.release()

    def _name(self, topic: FetchTopic) -> str:
        if self._request.version < _TOPIC_IDS_SINCE:
            return topic.topic
        return self._services.replicas.topic_of(topic.topic_id) or ""

    def try_complete(self, partition: TopicPartition) -> bool:
        """See :class:`harness.broker.purgatory.Waiter`. Looks at one partition, until there is enough."""
        is_over = True
        with self._request.surviving():
            is_over = self._has_enough(partition)
            if is_over:
                self._answer(self._look_again())
        if is_over:
            self._let_go()
        return is_over

    def _has_enough(self, changed: TopicPartition) -> bool:
        part = self._by_name[changed]
        self._judge(part, first=False)
        located = self._locate(part, part.asked.partition_max_bytes, at_least_one=True)
        if located is None:
            return True
        self._found_bytes += located.size - part.found_bytes
        part.found_bytes = located.size
        return self._found_bytes >= self._body.min_bytes

    def expire(self) -> None:
        """See :class:`harness.broker.purgatory.Waiter`."""
        with self._request.surviving():
            self._answer(self._look_again())
        self._let_go()

    # ------------------------------------------------------------------------------------ judging

    def _look_again(self) -> list[_Found]:
        for part in self._parts:
            self._judge(part, first=False)
        return self._find()

    def _judge(self, part: _Part, *, first: bool) -> None:
        """Ask the core: a follower's fetch counts as progress once, the first time."""
        if part.partition is None:
            part.answer = _refusal(part, self._services.replicas.absence_of(part.name))
        elif self._replica is None:
            if "fetch_epochs_unchecked" in self._services.knobs.bugs:
                part.asked.current_leader_epoch = NO_EPOCH
            part.answer = _judge_consumer(self._services, part, part.partition)
        elif first:
            part.received = self._received(part, self._replica)
            part.partition.handle(part.received)
        else:
            assert part.received is not None
            part.answer = part.partition.replica.judge_fetch(part.received)

    def _received(self, part: _Part, replica: NodeId) -> FetchReceived:
        asked = part.asked
        return FetchReceived(
            part,
            replica,
            asked.fetch_offset,
            max(asked.current_leader_epoch, NO_EPOCH),
            max(asked.last_fetched_epoch, NO_EPOCH),
            kafka_time_ns(self._services.clock),
            self._broker_epoch,
            NO_OFFSET if asked.high_watermark == NO_HIGH_WATERMARK else asked.high_watermark,
            max(asked.log_start_offset, NO_OFFSET),
        )

    def _find(self) -> list[_Found]:
        """Locate, without reading, what each partition can give within the limits of the request."""
        budget = min(self._body.max_bytes, MAX_FETCH_BYTES)
        found, total = [], 0
        for part in self._parts:
            located = self._locate(part, min(budget - total, part.asked.partition_max_bytes), at_least_one=not total)
            part.found_bytes = located.size if located else 0
            total += part.found_bytes
            found.append(_Found(part, part.answer, located))
        self._found_bytes = total
        return found

    def _locate(self, part: _Part, limit: int, *, at_least_one: bool) -> Slice | None:
        """The slice of its log that ``part`` can answer; None where it answers an error or a divergence."""
        if part.partition is None or part.answer.error is not ErrorCode.NONE or part.answer.diverging is not None:
            return None
        bound = part.partition.replica.read_bound(self._replica)
        log, offset, services = part.partition.log, part.asked.fetch_offset, self._services
        if self._replica is None:
            asked = offset, part.name in self._begun
            log, offset = served(services.knobs, services.clock, part.partition, services.replicas, asked)
            bound = served_up_to(services.knobs, bound)
        if self._wants_committed and "stable_offset_too_high" not in services.knobs.bugs:
            bound = min(bound, part.partition.replica.log.last_stable_offset)
        return log.locate(offset, bound, max(limit, 0), at_least_one=at_least_one)

    def _is_enough(self, found: list[_Found]) -> bool:
        return any(one.slice is None for one in found) or self._found_bytes >= self._body.min_bytes

    # ------------------------------------------------------------------------------------ answering

    def _answer(self, found: list[_Found]) -> None:
        self._let_go()
        waiting = iter(found)
        self._request.answer(
            FetchResponse(
                responses=[
                    FetchableTopicResponse(name, topic_id, [self._data(next(waiting)) for _ in parts])
                    for (name, topic_id), parts in self._topics.items()
                ]
            )
        )

    def _data(self, found: _Found) -> PartitionData:
        part, answer, located = found
        diverging, records = answer.diverging, self._read(part, located)
        return PartitionData(
            part.asked.partition,
            ErrorCode.KAFKA_STORAGE_ERROR if records is None else answer.error,
            answer.high_watermark,
            last_stable_offset=answer.high_watermark if part.partition is None else _stable(part.partition, answer),
            log_start_offset=answer.log_start_offset,
            diverging_epoch=None if diverging is None else DivergingEpoch(*diverging),
            current_leader=self._leader(part) if answer.error in _WRONG_LEADER else None,
            aborted_transactions=self._aborted(part, located),
            records=records or b"",
        )

    def _aborted(self, part: _Part, located: Slice | None) -> list[AbortedTransaction] | None:
        """The aborted transactions in what a consumer gets; None where it does not ask for committed records alone."""
        if not self._wants_committed:
            return None
        is_unlisted = "aborted_unlisted" in self._services.knobs.bugs
        if is_unlisted or located is None or not located.size or part.partition is None:
            return []
        found = part.partition.replica.log.producers.aborted(part.asked.fetch_offset, located.end_offset)
        return [AbortedTransaction(one.producer_id, one.first_offset) for one in found]

    def _read(self, part: _Part, located: Slice | None) -> bytes | None:
        """The bytes of ``located``; None when storage refuses to read them: then the replica goes offline, later.

        Not at once, for an event of that very replica may have triggered this answer.
        """
        try:
            data = located.read() if located else b""
            return answered(self._services.knobs, self._services.clock, data) if self._replica is None else data
        except OSError as error:
            assert part.partition is not None
            self._services.network.call_later(0, partial(part.partition.refused, "read", error.errno or 0))
            return None

    def _leader(self, part: _Part) -> LeaderIdAndEpoch | None:
        state = self._services.metadata.partition(*part.name)
        return None if state is None else LeaderIdAndEpoch(state.leader, state.leader_epoch)


_WRONG_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def _stable(partition: Partition, answer: AnswerFetch) -> Offset:
    """The last stable offset, where the answer is none of an error."""
    return NO_OFFSET if answer.high_watermark == NO_OFFSET else partition.replica.log.last_stable_offset


def _judge_consumer(services: FetchServices, part: _Part, partition: Partition) -> AnswerFetch:
    """Accept any offset within the log; a consumer gets the records below the high watermark."""
    replica = partition.replica
    error = replica.leader_error(max(part.asked.current_leader_epoch, NO_EPOCH))
    if error is not ErrorCode.NONE:
        return _refusal(part, error)
    offset = part.asked.fetch_offset
    is_within = replica.log_start_offset <= offset <= replica.log_end_offset
    if not is_within or is_refused_at_the_end(services.knobs, services.clock, partition, offset):
        error = ErrorCode.OFFSET_OUT_OF_RANGE
    return AnswerFetch(
        part, error, replica.high_watermark, replica.log_start_offset, replica.log_end_offset, diverging=None
    )


def _refusal(part: _Part, error: ErrorCode) -> AnswerFetch:
    unknown: Offset = NO_OFFSET
    return AnswerFetch(part, error, unknown, unknown, unknown, diverging=None)


def fetch(services: FetchServices, request: Request) -> None:
    """Serve Fetch. There are no fetch sessions: every answer has session id 0, which all clients accept.

    The broker believes any client that claims to be a replica, as every Kafka without authorisation: CVE-2018-1288.
    """
    body = cast("FetchRequest", request.body)
    if body.session_id:
        request.answer(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    else:
        Fetching(services, request).start()
