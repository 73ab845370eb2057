"""The logs of one broker and the files beside them, as Kafka's ``LogManager`` keeps them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harness.broker.checkpoints import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from harness.broker.log_directories import LogDirectories
from harness.broker.log_directory import LogDirectory
from harness.broker.partition import Partition
from harness.broker.replicas import DirectoryFailed, Replicas
from harness.broker.timeline import StorageRefusal
from harness.coordination.internal_topics import INTERNAL_TOPICS
from harness.model import Offset


class LogManager:
    """Opens, flushes, checkpoints and closes the logs of one broker, and deletes segments that have expired.

    Args:
        replicas: of the broker.
        directories: of the broker.
        say: takes one line for the operator.
        failed: see :data:`harness.broker.replicas.DirectoryFailed`.
        halt: halts the broker; takes the reason.
    """

    def __init__(
        self,
        replicas: Replicas,
        directories: LogDirectories,
        say: Callable[[str], None],
        failed: DirectoryFailed,
        halt: Callable[[str], None],
    ) -> None:
        self._replicas = replicas
        self._directories = directories
        self._say = say
        self._failed = failed
        self._halt = halt

    def load(self) -> None:
        """Open every log in every directory."""
        for directory in self._directories:
            self._attempt(directory, "load the logs", partial(self._load_from, directory))

    def finish_loading(self) -> None:
        """Remove the markers of a clean shutdown."""
        for directory in self._directories.online:
            self._attempt(directory, "remove the marker of a clean shutdown", directory.loaded)

    def flush_when_due(self) -> None:
        """Flush every log that has been unflushed for ``log.flush.interval.ms``."""
        for partition in self._replicas:
            partition.flush_when_due()

    def retire(self) -> None:
        """Delete the segments whose records are all older than ``retention.ms``, but for those of coordinators."""
        for partition in self._replicas:
            if partition.name.topic not in INTERNAL_TOPICS:
                partition.retire()

    def expire_producers(self, before_ms: int) -> None:
        """Forget the producers whose last batch has an older timestamp, in milliseconds since the Unix epoch."""
        for partition in self._replicas:
            partition.replica.log.producers.expire(before_ms)

    def checkpoint_high_watermarks(self) -> None:
        """Write ``replication-offset-checkpoint``."""
        self._checkpoint(HIGH_WATERMARKS, "high watermarks", lambda partition: partition.replica.high_watermark)

    def checkpoint_recovery_points(self) -> None:
        """Write ``recovery-point-offset-checkpoint``."""
        self._checkpoint(RECOVERY_POINTS, "recovery points", lambda partition: partition.log.recovery_point)

    def lower_recovery_points(self, directory: LogDirectory) -> None:
        """Write ``recovery-point-offset-checkpoint`` if that of ``directory`` is ahead of a log, which has been cut.

        Otherwise the next start would take for flushed what is appended below the old recovery point.

        Raises:
            OSError: the old one is still there.
        """
        logs = {partition.name: partition.log for partition in self._replicas.within(directory)}
        if any(log.recovery_point < directory.checkpointed(name).recovery_point for name, log in logs.items()):
            directory.write(RECOVERY_POINTS, {name: log.recovery_point for name, log in logs.items()})

    def lower_log_starts(self, directory: LogDirectory) -> None:
        """Write ``log-start-offset-checkpoint``, now that a log of ``directory`` starts earlier than it did.

        Otherwise the next start would take for deleted what is appended below the old log start.

        Raises:
            OSError: the old one is still there.
        """
        starts = {partition.name: partition.log.log_start_offset for partition in self._replicas.within(directory)}
        directory.write(LOG_STARTS, starts)

    def checkpoint_log_starts(self) -> None:
        """Write ``log-start-offset-checkpoint``."""
        self._checkpoint(LOG_STARTS, "log starts", lambda partition: partition.log.log_start_offset)

    def flush(self) -> None:
        """Flush every log and write every checkpoint, before a shutdown."""
        for partition in self._replicas:
            partition.flush()
        self.checkpoint_recovery_points()
        self.checkpoint_log_starts()
        self.checkpoint_high_watermarks()

    def mark_clean(self, broker_epoch: int, incarnation: int) -> None:
        """Write the markers of a clean shutdown."""
        for directory in self._directories.online:
            close = partial(directory.close, broker_epoch, incarnation)
            self._attempt(directory, "mark the shutdown as clean", close)

    def close(self) -> None:
        """Close every log."""
        for partition in self._replicas:
            partition.log.close()

    def _load_from(self, directory: LogDirectory) -> None:
        directory.load()
        self._say(f"The last shutdown was {'' if directory.clean else 'not '}clean.")
        for name in directory.partitions():
            other = self._replicas.get(name)
            if other is not None:
                numbers = f"{other.directory.number} and {directory.number}"
                self._halt(f"{name} lies in log directories {numbers}; remove it from the one that has failed recently")
            elif directory.online:
                self._replicas.open(name, directory)
        if directory.online:  # the last life may have ended between a truncation and its checkpoint
            self.lower_recovery_points(directory)

    def _checkpoint(self, file: str, what: str, offset: Callable[[Partition], Offset]) -> None:
        """Write one checkpoint into every directory: of the replicas that lie there."""
        for directory in self._directories.online:
            offsets = {partition.name: offset(partition) for partition in self._replicas.within(directory)}
            self._attempt(directory, f"checkpoint the {what}", partial(directory.write, file, offsets))

    def _attempt(self, directory: LogDirectory, what: str, act: Callable[[], None]) -> None:
        """Read or write something beside the logs of ``directory``, which goes offline if storage refuses."""
        try:
            act()
        except OSError as error:
            self._failed(directory, what, StorageRefusal(error.errno or 0, None, what))
