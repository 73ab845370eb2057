"""One replica bound to its log: performs the core's effects in order and feeds storage's answers back."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol, assert_never, cast

from harness.broker.checkpoints import LEADER_EPOCHS, GarbledCheckpoint, format_epochs, parse_epochs
from harness.broker.kafka_time import kafka_time_ns
from harness.broker.log_directory import LogDirectory
from harness.broker.segments import Batches, LogPolicy, SegmentLog
from harness.broker.settings import NEVER, Settings
from harness.broker.timeline import ReplicaState, StorageRefusal, Timeline
from harness.broker.topic_config import Configs, TopicConfig, topic_config
from harness.clock import Clock
from harness.error_codes import ErrorCode
from harness.model import NodeId, Offset, TopicPartition
from harness.replication.knobs import Knobs
from harness.replication.log_state import StoredLog
from harness.replication.messages import (
    AnswerDeleteRecords,
    AnswerFetch,
    AnswerProduce,
    Append,
    Appended,
    AppendFailed,
    CheckpointEpochs,
    ConfigsChanged,
    EpochEntry,
    HighWatermarkAdvanced,
    LogStartedAt,
    LogStartRaised,
    ProposeIsr,
    RaiseLogStart,
    ReplicaEffect,
    ReplicaEvent,
    ReplicaFailed,
    RetentionReached,
    StartLogAt,
    Truncate,
    Truncated,
)
from harness.replication.replica import Replica, ReplicaConfig


class ProduceToken(Protocol):
    """The ``token`` of every :class:`ProduceRequested`."""

    def produced(self, error: ErrorCode, base_offset: Offset) -> None:
        """The core's answer."""
        ...


class FetchToken(Protocol):
    """The ``token`` of every :class:`FetchReceived`."""

    def judged(self, answer: AnswerFetch) -> None:
        """The core's answer."""
        ...


class DeleteRecordsToken(Protocol):
    """The ``token`` of every :class:`DeleteRecordsRequested`."""

    def deleted(self, error: ErrorCode, low_watermark: Offset) -> None:
        """The core's answer."""
        ...


class Owner(Protocol):
    """The broker, as its partitions see it."""

    @property
    def node(self) -> NodeId:
        """Its id."""
        ...

    clock: Clock
    knobs: Knobs
    settings: Settings
    timeline: Timeline
    say: Callable[[str], None]

    def propose_isr(self, partition: Partition, proposal: ProposeIsr) -> None:
        """Send the proposal to the controller and feed its answer back, later."""
        ...

    def replica_changed(self, partition: Partition, before: ReplicaState, after: ReplicaState) -> None:
        """Whatever waits for this replica may go on."""
        ...

    def lower_recovery_points(self, directory: LogDirectory) -> None:
        """A log of ``directory`` was cut: see :meth:`harness.broker.log_manager.LogManager.lower_recovery_points`."""
        ...

    def lower_log_starts(self, directory: LogDirectory) -> None:
        """A log of ``directory`` starts earlier: see :meth:`harness.broker.log_manager.LogManager.lower_log_starts`."""
        ...

    def storage_refused(self) -> None:
        """Storage has refused something; :meth:`storage_failed` will follow, after the core's last answers."""
        ...

    def storage_failed(self, directory: LogDirectory, refusal: StorageRefusal) -> None:
        """A replica went offline: all of its directory do, and with the last directory the broker halts."""
        ...

    def protocol_failed(self, reason: str) -> None:
        """The protocol gives this broker up: it halts."""
        ...


class Partition:
    """One replica of this broker.

    Args:
        owner: the broker.
        name: which partition.
        directory: where it lies, or is to lie.

    Attributes:
        config: what it obeys: the cluster's settings until the controller has told those of its topic.
        incarnation: of its topic: see :class:`harness.replication.controller_messages.TopicState`.

    Raises:
        OSError: its directory cannot be read or created, or a checkpoint that is wrong not be written again.
    """

    def __init__(self, owner: Owner, name: TopicPartition, directory: LogDirectory) -> None:
        self.name = name
        self.directory = directory
        self.config = topic_config(owner.settings)
        self.incarnation = 0
        self._configs: Configs | None = None
        self.log = SegmentLog(directory.files, str(name), _policy(self.config, owner), directory.checkpointed(name))
        self._owner = owner
        self._flushed_ms = owner.clock.wall_ms()
        self._cuts: list[tuple[str, dict[str, object]]] = []
        self._failure: ReplicaFailed | None = None
        self._refusal: StorageRefusal | None = None
        self.replica = Replica(
            owner.node,
            name,
            owner.knobs,
            ReplicaConfig(
                min_insync_replicas=self.config.min_insync_replicas,
                replica_lag_time_max_ms=owner.settings.replica_lag_time_max_ms,
                unclean_leader_election_enable=self.config.unclean_leader_election_enable,
            ),
            StoredLog(
                log_start_offset=self.log.log_start_offset,
                log_end_offset=self.log.log_end_offset,
                epoch_entries=self._recovered_epochs(),
                high_watermark=directory.high_watermark(name),
                producer_batches=self.log.producer_spans(),
            ),
        )
        self._mend_checkpoint()
        self._lower_cleaned_offset()
        self.state = self._written = self._state()
        self._announce_recovery()

    def handle(self, event: ReplicaEvent) -> None:
        """Hand ``event`` to the core and perform its effects, until storage has nothing more to report."""
        pending: ReplicaEvent | None = event
        while pending is not None:
            effects = self.replica.handle(pending)
            pending = None
            for effect in effects:
                pending = self._perform(effect)
            if self._failure is not None and self.replica.role != "offline":
                pending = AppendFailed(self._failure.errno)
        self._publish()

    @property
    def is_configured(self) -> bool:
        """Whether the controller has told the configurations of its topic since the broker started."""
        return self._configs is not None

    def configure(self, incarnation: int, configs: Configs) -> None:
        """Obey the configurations of its topic, as the controller has pushed them."""
        self.incarnation = incarnation
        if configs == self._configs:
            return
        is_news = bool(configs or self._configs)
        self._configs = configs
        if is_news:
            self.config = topic_config(self._owner.settings, configs)
            self.log.policy = _policy(self.config, self._owner)
            self.handle(ConfigsChanged(self.config.min_insync_replicas, self.config.unclean_leader_election_enable))

    def flush_when_due(self) -> None:
        """Flush what has been unflushed for ``flush.ms``."""
        now_ms = self._owner.clock.wall_ms()
        if now_ms - self._flushed_ms >= self.config.flush_ms:
            self._flushed_ms = now_ms
            self.flush()

    def flush(self) -> None:
        """Make the log durable, unless it is offline."""
        if self.replica.role == "offline":
            return
        try:
            self.log.flush()
        except OSError as error:
            self.refused("flush", error.errno or 0)

    def refused(self, operation: str, errno: int) -> None:
        """Storage has refused something that the core did not ask for: the replica goes offline."""
        self._complain(operation, StorageRefusal(errno, str(self.name), operation))
        self.handle(AppendFailed(errno))

    def delete(self) -> None:
        """Delete the log, and what its directory has written down about it.

        Raises:
            OSError: something of it is still there.
        """
        self.log.close()
        files, path = self.directory.files, str(self.name)
        for name in files.list(path):
            files.remove(f"{path}/{name}")
        files.remove_directory(path)
        files.flush_directory("")
        self.directory.forget(self.name)

    def retire(self) -> None:
        """Let the core delete the segments whose records are all older than ``retention.ms``."""
        clock, limit_ms = self._owner.clock, self.config.retention_ms
        if not self.config.deletes or not self.is_configured or limit_ms < 0:
            return
        if "retention_in_seconds" in self._owner.knobs.bugs:
            limit_ms //= 1_000
        start = self.log.expired(clock.wall_ms() - limit_ms, self.replica.high_watermark)
        if start > self.log.log_start_offset:
            self.handle(RetentionReached(start, kafka_time_ns(clock)))

    def status(self) -> dict[str, Any]:
        """For the control channel."""
        remote = self.replica.remote_log_end_offsets
        return {
            "topic": self.name.topic,
            "partition": self.name.partition,
            **self.state._asdict(),
            "replicas": list(self.replica.replicas),
            "remote_log_end_offsets": {str(node): remote[node] for node in sorted(remote)},
        }

    # ------------------------------------------------------------------------------------ effects

    def _perform(self, effect: ReplicaEffect) -> ReplicaEvent | None:  # noqa: C901 (one case per effect)
        """Perform one effect; returns storage's answer, if there is one."""
        match effect:
            case Append():
                return self._append(effect)
            case Truncate(to_offset, reason):
                return self._truncate(to_offset, reason)
            case RaiseLogStart(to_offset, reason):
                return self._raise_log_start(to_offset, reason)
            case StartLogAt(offset, reason):
                return self._start_log_at(offset, reason)
            case CheckpointEpochs(entries):
                self._checkpoint(entries)
            case AnswerProduce(token, error, base_offset):
                self._answer_produce(cast("ProduceToken", token), error, base_offset)
            case AnswerFetch():
                cast("FetchToken", effect.token).judged(effect)
            case AnswerDeleteRecords(token, error, low_watermark):
                self._write_down(self._state())  # the log start offset, before a client learns it
                cast("DeleteRecordsToken", token).deleted(error, low_watermark)
            case ProposeIsr():
                self._owner.propose_isr(self, effect)
            case HighWatermarkAdvanced():
                pass  # :meth:`_publish` sees it
            case ReplicaFailed():
                self._failure = self._failure or effect
            case _:
                assert_never(effect)
        return None

    def _append(self, effect: Append) -> ReplicaEvent:
        assert isinstance(effect.payload, Batches)
        try:
            self.log.append(effect.payload, effect.spans)
        except OSError as error:
            self._complain("append to", StorageRefusal(error.errno or 0, str(self.name), "append", self.log.torn_bytes))
            return AppendFailed(error.errno or 0)
        return Appended(kafka_time_ns(self._owner.clock))

    def _truncate(self, to_offset: Offset, reason: str) -> ReplicaEvent:
        from_offset = self.log.log_end_offset
        if "cut_ends_the_broker" in self._owner.knobs.bugs:
            self._failure = ReplicaFailed(0, f"{self.name} cannot be cut to {to_offset}")
            return AppendFailed(0)
        try:
            self.log.truncate(to_offset)
        except OSError as error:
            self._complain("truncate", StorageRefusal(error.errno or 0, str(self.name), "truncate"))
            return AppendFailed(error.errno or 0)
        self._lower_recovery_point()
        end = self.log.log_end_offset
        self._cuts.append(("truncation", {"from_offset": from_offset, "to_offset": end, "reason": reason}))
        self._owner.say(f"Truncated {self.name} from offset {from_offset} to {end} ({reason}).")
        return Truncated(end, self.log.producer_spans())

    def _raise_log_start(self, to_offset: Offset, reason: str) -> ReplicaEvent:
        from_offset = self.log.log_start_offset
        try:
            self.log.raise_start(to_offset, roll=reason == "retention")
        except OSError as error:
            self._complain("delete segments of", StorageRefusal(error.errno or 0, str(self.name), "delete segments"))
            return AppendFailed(error.errno or 0)
        start = self.log.log_start_offset
        self._cuts.append(("log_start", {"from_offset": from_offset, "to_offset": start, "reason": reason}))
        self._owner.say(f"{self.name} starts at offset {start} instead of {from_offset} ({reason}).")
        return LogStartRaised(start)

    def _start_log_at(self, offset: Offset, reason: str) -> ReplicaEvent:
        start, end = self.log.log_start_offset, self.log.log_end_offset
        try:
            self.log.start_at(offset)
        except OSError as error:
            self._complain("empty", StorageRefusal(error.errno or 0, str(self.name), "empty"))
            return AppendFailed(error.errno or 0)
        self._lower_recovery_point()
        if offset < start and self._owner.knobs.lowered_log_start == "written":
            self._write_now("log starts", self._owner.lower_log_starts)
        self._cuts.append(("truncation", {"from_offset": end, "to_offset": start, "reason": reason}))
        self._cuts.append(("log_start", {"from_offset": start, "to_offset": offset, "reason": reason}))
        self._owner.say(f"Emptied {self.name}, which ended at {end}; it starts at {offset} now ({reason}).")
        return LogStartedAt(offset)

    def _lower_recovery_point(self) -> None:
        """Write down a recovery point that a cut has lowered, before anything is appended, as Kafka does.

        Likewise up to where the log is compacted.
        """
        self._write_now("recovery points", self._owner.lower_recovery_points)
        self._write_now("cleaned offsets", lambda _: self._lower_cleaned_offset())

    def _lower_cleaned_offset(self) -> None:
        """Write down that the log is compacted up to its end at most: what it lost is not what will be there.

        Raises:
            OSError: the old checkpoint is still there.
        """
        end = self.log.log_end_offset
        if self.directory.first_dirty_offset(self.name) > end:
            self.directory.write_first_dirty_offset(self.name, end)

    def _write_now(self, what: str, write: Callable[[LogDirectory], None]) -> None:
        """Write a checkpoint of the directory out of its turn; if that is refused, the replica fails."""
        try:
            write(self.directory)
        except OSError as error:
            self._complain(
                f"checkpoint the {what} of", StorageRefusal(error.errno or 0, str(self.name), f"checkpoint the {what}")
            )
            self._failure = ReplicaFailed(error.errno or 0)

    def _checkpoint(self, entries: tuple[EpochEntry, ...]) -> None:
        try:
            self.directory.files.replace_text(f"{self.name}/{LEADER_EPOCHS}", format_epochs(entries), flush=True)
        except OSError as error:
            refusal = StorageRefusal(error.errno or 0, str(self.name), "checkpoint leader epochs")
            self._complain("checkpoint the leader epochs of", refusal)
            self._failure = ReplicaFailed(error.errno or 0)

    def _answer_produce(self, token: ProduceToken, error: ErrorCode, base_offset: Offset) -> None:
        if error is ErrorCode.NONE:
            self._write_down(self._state())  # the high watermark, before a client learns it
        # An epoch that could not be written down must not be acknowledged, although the records are in the log.
        if self._failure is not None and error is ErrorCode.NONE:
            token.produced(ErrorCode.KAFKA_STORAGE_ERROR, -1)
        else:
            token.produced(error, base_offset)

    def _complain(self, verb: str, refusal: StorageRefusal) -> None:
        self._refusal = self._refusal or refusal
        self._owner.storage_refused()
        self._owner.say(f"Storage failed: cannot {verb} {self.name}: {os.strerror(refusal.errno)}.")

    # ------------------------------------------------------------------------------------ what others see

    def _state(self) -> ReplicaState:
        replica = self.replica
        return ReplicaState(
            replica.role,
            replica.leader,
            replica.leader_epoch,
            replica.partition_epoch,
            replica.high_watermark,
            replica.log_end_offset,
            replica.log_start_offset,
            replica.isr,
        )

    def _publish(self) -> None:
        """Report what changed to the timeline and the broker."""
        before, after = self.state, self._state()
        self.state = after
        self._write_down(after)
        if before != after:
            self._owner.replica_changed(self, before, after)
        if self._failure is not None and before.role != "offline":
            self._report(self._failure)

    def _write_down(self, state: ReplicaState) -> None:
        """Write to the timeline what it lacks of ``state``, the present one."""
        for kind, detail in self._cuts:
            self._owner.timeline.about_replica(kind, self.name, state, detail)
        self._cuts.clear()
        if state != self._written:
            self._written = state
            self._owner.timeline.about_replica("state", self.name, state)

    def _report(self, failure: ReplicaFailed) -> None:
        if failure.errno or self._refusal:
            refusal = self._refusal or StorageRefusal(failure.errno, str(self.name), failure.reason)
            self._owner.storage_failed(self.directory, refusal)
        else:
            self._owner.protocol_failed(failure.reason)

    # ------------------------------------------------------------------------------------ recovery

    def _recovered_epochs(self) -> tuple[EpochEntry, ...]:
        """The epochs of the log as loaded; Kafka forgets the last one, too, if all its records have been deleted."""
        is_emptied = self.log.log_start_offset == self.log.log_end_offset
        forgotten = is_emptied and self._owner.knobs.emptied_log_epoch == "forgotten"
        return () if forgotten else self.log.recovered.epochs

    def _mend_checkpoint(self) -> None:
        """Rewrite ``leader-epoch-checkpoint`` where it differs from the log.

        The batches' headers decide. The file may lack what was appended last, for an append comes before its
        checkpoint; and it may have too much: an entry beyond the log's end would come true when the log reaches it.
        """
        path = f"{self.name}/{LEADER_EPOCHS}"
        text = self.directory.files.read_text(path)
        entries = self.replica.epoch_entries
        try:
            sound = entries == (parse_epochs(text) if text is not None else ())
        except GarbledCheckpoint as error:
            self._owner.say(f"Ignored the garbled {LEADER_EPOCHS} of {self.name} ({error}); rebuilt it from the log.")
            sound = False
        if not sound:
            self.directory.files.replace_text(path, format_epochs(entries), flush=True)

    def _announce_recovery(self) -> None:
        if self.log.recovered.cut_bytes:
            self._owner.say(f"Recovered {self.name}: cut {self.log.recovered.cut_bytes} bytes off its end.")
        self._owner.timeline.about_replica("state", self.name, self.state)


def _policy(config: TopicConfig, owner: Owner) -> LogPolicy:
    knobs = owner.knobs
    return LogPolicy(
        segment_bytes=config.segment_bytes,
        roll_ms=min(config.segment_ms, config.max_compaction_lag_ms) if config.compacts else config.segment_ms,
        flush_messages=NEVER if "flush_forgotten" in knobs.bugs else config.flush_messages,
        flush_names=knobs.segment_names == "flushed",
        recovered_tail=knobs.recovered_tail,
        bugs=knobs.bugs,
    )
