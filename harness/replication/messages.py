"""The input and output of the replication core: events in, *ordered* effects out.

The contract, after etcd's raft: a driver calls ``handle(event)``, performs the returned effects in order, and
feeds what storage says back as further events *before* it hands in anything else. ``Append`` and ``Truncate``
are performed at once and answered by ``Appended``/``AppendFailed``/``Truncated``; whatever must wait for them
(an acknowledgement, a watermark) is only ever emitted by the handling of those answers: persist, then send. One
list of effects holds at most one of the two, as its last element.

A replica's ``now_ns`` is *Kafka time*: its node's wall clock in nanoseconds, because Kafka measures
``replica.lag.time.max.ms`` with ``time.milliseconds()``. It may jump, either way, and the core must bear it: after a
step forward every follower that is not at the log end lags until its next fetch, after a step backward nobody lags
until the clock has caught up. Only a :class:`Tick` for the controller, whose sessions are durations, carries
monotonic nanoseconds. ``token`` is the driver's own handle for a waiting request; the core only
hands it back.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from harness.model import NodeId, Offset


class ErrorCode(IntEnum):
    """The Kafka protocol's error codes that replication answers with (names as in Kafka's ``Errors``)."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    REPLICA_NOT_AVAILABLE = 9
    STALE_CONTROLLER_EPOCH = 11
    INVALID_TOPIC_EXCEPTION = 17
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    INVALID_REQUEST = 42
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    KAFKA_STORAGE_ERROR = 56
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    STALE_BROKER_EPOCH = 77
    INVALID_UPDATE_VERSION = 95
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INELIGIBLE_REPLICA = 107


class ProducerStamp(NamedTuple):
    """What an idempotent producer writes into a batch's header; ``base_sequence`` is its first record's."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


class BatchSpan(NamedTuple):
    """Where one record batch lies. ``end_offset`` is exclusive (its last record's offset + 1).

    ``producer`` is None where the batch's header has no producer id (-1).
    """

    base_offset: Offset
    end_offset: Offset
    leader_epoch: int
    producer: ProducerStamp | None = None


class EpochEnd(NamedTuple):
    """The end of a leader epoch in the leader's log: ``end_offset`` is exclusive."""

    leader_epoch: int
    end_offset: Offset


class EpochEntry(NamedTuple):
    """One row of the leader epoch cache and of ``leader-epoch-checkpoint``."""

    leader_epoch: int
    start_offset: Offset


class NextFetch(NamedTuple):
    """What a follower must ask its leader for next.

    ``leader_epoch`` and ``last_fetched_epoch`` are ``NO_EPOCH`` where the generation does not carry them.
    """

    leader: NodeId
    leader_epoch: int
    fetch_offset: Offset
    last_fetched_epoch: int


# ---------------------------------------------------------------------------------------------- replica: events


@dataclass(frozen=True, slots=True)
class PartitionStateChanged:
    """The controller's ``LeaderAndIsr`` for this partition (stale leader or partition epochs are ignored)."""

    leader: NodeId
    leader_epoch: int
    isr: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]
    partition_epoch: int
    now_ns: int


@dataclass(frozen=True, slots=True)
class ProduceRequested:
    """A client wants ``record_counts`` records appended: one count per batch, in order.

    ``payload`` is opaque: the driver gets it back in :class:`Append` and patches offsets and epoch into it.
    ``producer`` is the stamp of an idempotent producer's batch, of which a request may hold only one.
    """

    token: object
    acks: int
    record_counts: tuple[int, ...]
    payload: object
    now_ns: int
    producer: ProducerStamp | None = None


@dataclass(frozen=True, slots=True)
class ProduceExpired:
    """The waiting produce request ``token`` reached its timeout."""

    token: object


@dataclass(frozen=True, slots=True)
class FetchReceived:
    """A follower's fetch of this partition, before anything is read for it.

    ``current_leader_epoch`` and ``last_fetched_epoch`` are ``NO_EPOCH`` where the follower's protocol does not
    carry them.
    """

    token: object
    replica: NodeId
    fetch_offset: Offset
    current_leader_epoch: int
    last_fetched_epoch: int
    now_ns: int


@dataclass(frozen=True, slots=True)
class FetchAnswered:
    """The leader's answer to this replica's own fetch.

    ``leader``, ``leader_epoch`` and ``fetch_offset`` are those the *request* was made with, so that an answer
    that outlived its request's epoch is recognised. ``spans``/``payload`` are the fetched batches (may be none).
    """

    leader: NodeId
    leader_epoch: int
    fetch_offset: Offset
    error: ErrorCode
    high_watermark: Offset
    log_start_offset: Offset
    log_end_offset: Offset
    diverging: EpochEnd | None
    spans: tuple[BatchSpan, ...]
    payload: object
    now_ns: int


@dataclass(frozen=True, slots=True)
class Appended:
    """The last :class:`Append` is in the log (written, not necessarily flushed)."""

    now_ns: int


@dataclass(frozen=True, slots=True)
class AppendFailed:
    """The last :class:`Append` failed with ``errno``; the driver has cut the torn bytes off again.

    May also come unasked, when the storage that this replica shares with others has failed.
    """

    errno: int


@dataclass(frozen=True, slots=True)
class Truncated:
    """The last :class:`Truncate` was performed. Truncation is batch-granular: the end may be lower than asked.

    ``remaining`` are the batches of idempotent producers that the log still holds, oldest first; None: the core
    only forgets what was cut, and with it a producer whose last five batches were all cut.
    """

    log_end_offset: Offset
    remaining: tuple[BatchSpan, ...] | None = None


@dataclass(frozen=True, slots=True)
class IsrAnswered:
    """The controller's answer to the last :class:`ProposeIsr`; on success the ISR and its partition epoch.

    Every proposal gets exactly one answer, or none can follow it: where the controller could not be reached the
    driver answers ``REQUEST_TIMED_OUT``, and the core proposes the same again at the next :class:`Tick`.
    """

    error: ErrorCode
    isr: tuple[NodeId, ...]
    leader_epoch: int
    partition_epoch: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passes: the leader looks for ISR members that lag behind."""

    now_ns: int


ReplicaEvent: TypeAlias = (
    PartitionStateChanged | ProduceRequested | ProduceExpired | FetchReceived | FetchAnswered
    | Appended | AppendFailed | Truncated | IsrAnswered | Tick
)  # fmt: skip


# --------------------------------------------------------------------------------------------- replica: effects


@dataclass(frozen=True, slots=True)
class Append:
    """Write ``payload`` at the end of the log; ``spans`` are the batches' final offsets and epochs.

    On a leader the payload's headers must be patched to ``spans``; on a follower they already say so.
    """

    payload: object
    spans: tuple[BatchSpan, ...]


@dataclass(frozen=True, slots=True)
class Truncate:
    """Cut every batch that holds an offset ``>= to_offset``; ``reason`` is for the timeline."""

    to_offset: Offset
    reason: str


@dataclass(frozen=True, slots=True)
class CheckpointEpochs:
    """The leader epoch cache changed: write ``leader-epoch-checkpoint``."""

    entries: tuple[EpochEntry, ...]


@dataclass(frozen=True, slots=True)
class AnswerProduce:
    """Answer the produce request ``token``; ``base_offset`` is ``NO_OFFSET`` on error.

    Emitted for ``acks=0`` too: there the driver sends nothing.
    """

    token: object
    error: ErrorCode
    base_offset: Offset


@dataclass(frozen=True, slots=True)
class AnswerFetch:
    """Answer the follower's fetch ``token``.

    ``high_watermark`` was captured *before* this fetch advanced the follower (Kafka's pre-update watermark).
    Without an error and with ``diverging is None`` the driver reads from ``fetch_offset`` up to the log end; when
    nothing is there it parks the fetch and reads the watermark again on completion, as Kafka's purgatory does.
    """

    token: object
    error: ErrorCode
    high_watermark: Offset
    log_start_offset: Offset
    log_end_offset: Offset
    diverging: EpochEnd | None


@dataclass(frozen=True, slots=True)
class ProposeIsr:
    """Send ``AlterPartition`` to the controller."""

    isr: tuple[NodeId, ...]
    leader_epoch: int
    partition_epoch: int


@dataclass(frozen=True, slots=True)
class HighWatermarkAdvanced:
    """The high watermark is now ``high_watermark``: consumers' parked fetches may complete."""

    high_watermark: Offset


@dataclass(frozen=True, slots=True)
class ReplicaFailed:
    """This replica is offline until the broker restarts.

    Because storage failed with ``errno``; or, with ``errno`` 0, because this generation's protocol makes the
    broker exit for the given ``reason``.
    """

    errno: int
    reason: str = ""


ReplicaEffect: TypeAlias = (
    Append | Truncate | CheckpointEpochs | AnswerProduce | AnswerFetch | ProposeIsr | HighWatermarkAdvanced
    | ReplicaFailed
)  # fmt: skip
