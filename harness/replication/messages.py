"""The events that a replica takes, and the *ordered* effects that it returns.

The contract, after etcd's raft: a driver calls ``handle(event)``, performs the returned effects in order, and feeds
storage's answers back as further events *before* any other event. Four effects are storage operations, performed at
once, and answered: ``Append`` by ``Appended``, ``Truncate`` by ``Truncated``, ``RaiseLogStart`` by ``LogStartRaised``,
``StartLogAt`` by ``LogStartedAt``, and each of them by ``AppendFailed`` if it fails. Effects that must wait for them
(an acknowledgement, a watermark) are returned only for those answers: persist, then send. One list of effects holds at
most one of the four, as its last element.

A replica's ``now_ns`` is *Kafka time*: its node's wall clock in nanoseconds, because Kafka measures
``replica.lag.time.max.ms`` with ``time.milliseconds()``. It may jump either way: after a step forward every follower
that is not at the log end lags until its next fetch, after a step backward no follower lags until the clock has caught
up. Only a :class:`Tick` for the controller, whose sessions are durations, carries monotonic nanoseconds. ``token`` is
the driver's own handle for a waiting request; the core only hands it back.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from harness.error_codes import ErrorCode
from harness.model import NO_EPOCH, NO_OFFSET, NodeId, Offset
from harness.replication.message import message


class TransactionEnd(NamedTuple):
    """What a control batch says of its producer's transaction, decided in the leader epoch ``coordinator_epoch``."""

    commits: bool
    coordinator_epoch: int


class ProducerStamp(NamedTuple):
    """An idempotent producer's fields in a batch header.

    Attributes:
        producer_id: whose batch it is.
        producer_epoch: rises with every process that takes the producer's transactional id over.
        base_sequence: its first record's; -1 in a control batch.
        is_transactional: whether the batch is part of a transaction.
        ends: how a control batch ends a transaction; None: it is a batch of records, or see ``is_control``.
        timestamp_ms: the latest of its records, in milliseconds since the Unix epoch.
        is_control: whether it is a control batch, which without ``ends`` has lost its marker to compaction.
    """

    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool = False
    ends: TransactionEnd | None = None
    timestamp_ms: int = 0
    is_control: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether no number is missing."""
        return self.producer_id >= 0 and self.producer_epoch >= 0 and (self.base_sequence >= 0 or self.ends is not None)


@message
class BatchSpan:
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


@message
class NextFetch:
    """The next fetch of a follower.

    ``leader_epoch`` and ``last_fetched_epoch`` are ``NO_EPOCH`` where the generation does not carry them.
    ``high_watermark``, the follower's own, is ``NO_OFFSET`` except with ``hw_advance=after_followers``.
    """

    leader: NodeId
    leader_epoch: int
    fetch_offset: Offset
    last_fetched_epoch: int
    high_watermark: Offset = NO_OFFSET


class NextEpochLookup(NamedTuple):
    """A follower's request instead of a fetch: where ``requested_epoch`` ends in the leader's log (KIP-101).

    ``leader_epoch`` is ``NO_EPOCH`` where the generation does not carry it. After an error the follower repeats it
    later and truncates nothing.
    """

    leader: NodeId
    leader_epoch: int
    requested_epoch: int


# ---------------------------------------------------------------------------------------------- replica: events


@message
class PartitionStateChanged:
    """The controller's ``LeaderAndIsr`` for this partition (stale leader or partition epochs are ignored).

    ``isr`` may be empty where there is no leader. ``controller_epoch`` is that of the sender; ``NO_EPOCH``: the driver
    checks it.
    """

    leader: NodeId
    leader_epoch: int
    isr: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]
    partition_epoch: int
    now_ns: int
    controller_epoch: int = NO_EPOCH


@message
class ProduceRequested:
    """A client's produce request with ``record_counts`` records: one count per batch, in order.

    ``payload`` is opaque: the driver gets it back in :class:`Append` and patches offsets and epoch into it.
    ``producer`` is the stamp of an idempotent producer's batch, of which a request may hold only one. What a
    coordinator writes in the name of a producer, ``of_coordinator``, has no place in the producer's sequence.
    """

    token: object
    acks: int
    record_counts: tuple[int, ...]
    payload: object
    now_ns: int
    producer: ProducerStamp | None = None
    of_coordinator: bool = False


@message
class ProduceExpired:
    """The waiting produce request ``token`` reached its timeout."""

    token: object


@message
class FetchReceived:
    """A follower's fetch of this partition, before anything is read for it.

    ``current_leader_epoch`` and ``last_fetched_epoch`` are ``NO_EPOCH`` where the follower's protocol does not
    carry them. ``broker_epoch`` is that of the follower's registration, -1 if the request has none (KIP-903),
    ``high_watermark`` that of its :class:`NextFetch`, and ``log_start_offset`` where its log starts (KIP-107).
    """

    token: object
    replica: NodeId
    fetch_offset: Offset
    current_leader_epoch: int
    last_fetched_epoch: int
    now_ns: int
    broker_epoch: int = -1
    high_watermark: Offset = NO_OFFSET
    log_start_offset: Offset = NO_OFFSET


@message
class FetchAnswered:
    """The leader's answer to this replica's own fetch.

    ``leader``, ``leader_epoch`` and ``fetch_offset`` are those the *request* was made with, so that an answer
    that outlived its request's epoch is recognised. ``spans``/``payload`` are the fetched batches (may be none).

    With ``OFFSET_OUT_OF_RANGE`` the driver must add where the leader's log starts and ends (ListOffsets);
    otherwise ``log_start_offset`` is the answer's, and ``log_end_offset`` may be ``NO_OFFSET``.
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


@message
class EpochEndAnswered:
    """The leader's answer to this replica's :class:`NextEpochLookup`, of which the first three are a copy.

    ``end`` is ``EpochEnd(NO_EPOCH, NO_OFFSET)`` where the leader does not know (or with an error), and its epoch
    ``NO_EPOCH`` where the protocol carries the offset only (version 0).
    """

    leader: NodeId
    leader_epoch: int
    requested_epoch: int
    error: ErrorCode
    end: EpochEnd
    now_ns: int


@message
class DeleteRecordsRequested:
    """A client's request to delete the records below ``before_offset``; -1: all below the high watermark."""

    token: object
    before_offset: Offset
    now_ns: int


@message
class DeleteRecordsExpired:
    """The waiting request ``token`` to delete records reached its timeout."""

    token: object


@message
class RetentionReached:
    """Retention deletes the records below ``before_offset``, on any replica.

    The core never deletes records above the high watermark.
    """

    before_offset: Offset
    now_ns: int


@message
class Appended:
    """The last :class:`Append` is in the log (written, not necessarily flushed)."""

    now_ns: int


@message
class AppendFailed:
    """The last storage operation failed with ``errno``; the driver has truncated the torn bytes of an append.

    May also come without one, when the storage that this replica shares with others has failed.
    """

    errno: int


@message
class Truncated:
    """The last :class:`Truncate` was performed. Truncation is batch-granular: the end may be lower than asked.

    ``remaining`` are the batches of idempotent producers that the log still holds, oldest first; None: the core
    only forgets what was cut, and with it a producer whose last five batches were all cut, and knows of no transaction.
    """

    log_end_offset: Offset
    remaining: tuple[BatchSpan, ...] | None = None


@message
class LogStartRaised:
    """The last :class:`RaiseLogStart` was performed."""

    log_start_offset: Offset


@message
class LogStartedAt:
    """The last :class:`StartLogAt` was performed: the log is empty and begins at ``offset``."""

    offset: Offset


@message
class SessionsHeard:
    """The live brokers by the controller, each with the epoch of its registration.

    It replaces the earlier list: a broker that is missing has no session.
    """

    broker_epochs: tuple[tuple[NodeId, int], ...]


@message
class ConfigsChanged:
    """The topic's configurations of these names, in full, now that one may have changed."""

    min_insync_replicas: int
    unclean_leader_election_enable: bool


@message
class IsrAnswered:
    """The controller's answer to the last :class:`ProposeIsr`; on success the ISR and its partition epoch.

    Every proposal gets exactly one answer before the next one: if the controller could not be reached, the driver
    answers ``REQUEST_TIMED_OUT``, and the core repeats the proposal at the next :class:`Tick`.
    """

    error: ErrorCode
    isr: tuple[NodeId, ...]
    leader_epoch: int
    partition_epoch: int


@message
class Tick:
    """Time passes: the leader checks for lagging ISR members."""

    now_ns: int


ReplicaEvent: TypeAlias = (
    PartitionStateChanged | ProduceRequested | ProduceExpired | FetchReceived | FetchAnswered | EpochEndAnswered
    | DeleteRecordsRequested | DeleteRecordsExpired | RetentionReached | Appended | AppendFailed | Truncated
    | LogStartRaised | LogStartedAt | IsrAnswered | SessionsHeard | ConfigsChanged | Tick
)  # fmt: skip


# --------------------------------------------------------------------------------------------- replica: effects


@message
class Append:
    """Write ``payload`` at the end of the log; ``spans`` are the batches' final offsets and epochs.

    On a leader the driver patches the payload's headers to ``spans``; on a follower they are so already.
    """

    payload: object
    spans: tuple[BatchSpan, ...]


@message
class Truncate:
    """Cut every batch that holds an offset ``>= to_offset``; ``reason`` is for the timeline."""

    to_offset: Offset
    reason: str


@message
class RaiseLogStart:
    """Record that the log starts at ``to_offset``; segments wholly below it may be deleted.

    ``reason`` is for the timeline: ``delete_records``, ``retention``, or ``leader`` (whose log starts there).
    """

    to_offset: Offset
    reason: str


@message
class StartLogAt:
    """Delete the whole log and start an empty one whose first offset is ``offset``; ``reason`` is for the timeline."""

    offset: Offset
    reason: str


@message
class AnswerDeleteRecords:
    """Answer the request ``token``.

    ``low_watermark`` is the least known log start offset of the leader and the followers with a session; ``NO_OFFSET``
    on error, except for ``REQUEST_TIMED_OUT``: then the leader has deleted.
    """

    token: object
    error: ErrorCode
    low_watermark: Offset


@message
class CheckpointEpochs:
    """The leader epoch cache changed: write ``leader-epoch-checkpoint``."""

    entries: tuple[EpochEntry, ...]


@message
class AnswerProduce:
    """Answer the produce request ``token``; ``base_offset`` is ``NO_OFFSET`` on error.

    Emitted for ``acks=0`` too: there the driver sends nothing.
    """

    token: object
    error: ErrorCode
    base_offset: Offset


@message
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


@message
class ProposeIsr:
    """Send ``AlterPartition`` to the controller.

    ``broker_epochs`` are those of the members in ``isr``, in its order, from their last fetches; -1: unknown.
    """

    isr: tuple[NodeId, ...]
    leader_epoch: int
    partition_epoch: int
    broker_epochs: tuple[int, ...] = ()


@message
class HighWatermarkAdvanced:
    """The high watermark is now ``high_watermark``: consumers' parked fetches may complete."""

    high_watermark: Offset


@message
class ReplicaFailed:
    """This replica is offline until the broker restarts.

    Because storage failed with ``errno``; or, with ``errno`` 0, because this generation's broker exits for the given
    ``reason``.
    """

    errno: int
    reason: str = ""


ReplicaEffect: TypeAlias = (
    Append | Truncate | RaiseLogStart | StartLogAt | CheckpointEpochs | AnswerProduce | AnswerFetch
    | AnswerDeleteRecords | ProposeIsr | HighWatermarkAdvanced | ReplicaFailed
)  # fmt: skip
