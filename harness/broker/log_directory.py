"""The checkpoint files of one log directory, in Kafka's formats, which a starting broker reads.

``replication-offset-checkpoint`` (high watermarks), ``recovery-point-offset-checkpoint``,
``log-start-offset-checkpoint``, ``cleaner-offset-checkpoint``, and ``.kafka_cleanshutdown``, which exists from a clean
shutdown to the first write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from harness.broker.checkpoints import (
    CLEANED,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    GarbledCheckpoint,
    format_offsets,
    parse_offsets,
)
from harness.broker.ports import FileSystem
from harness.broker.segments import Checkpointed
from harness.model import Offset, TopicPartition
from harness.replication.knobs import Knobs

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


class LogDirectory:
    """A log directory of one broker, perhaps its only one.

    Attributes:
        files: where it is.
        number: which of the broker's it is, from 0.
        failure: the ``errno`` that took it offline; None while it is online.
        clean: whether the last shutdown was clean, as far as the marker is to be believed.
        previous_broker_epoch: what the broker was registered with when it shut down cleanly; -1: it did not.
        previous_incarnation: which of its lives that was; -1: it did not.
    """

    def __init__(self, files: FileSystem, knobs: Knobs, say: Callable[[str], None], number: int = 0) -> None:
        self.files = files
        self.number = number
        self.failure: int | None = None
        self.clean = False
        self.previous_broker_epoch = -1
        self.previous_incarnation = -1
        self._marker = knobs.clean_shutdown_marker
        self._say = say
        self._high_watermarks: dict[TopicPartition, Offset] = {}
        self._recovery_points: dict[TopicPartition, Offset] = {}
        self._log_starts: dict[TopicPartition, Offset] = {}
        self._cleaned: dict[TopicPartition, Offset] = {}

    @property
    def online(self) -> bool:
        """Whether it can be used."""
        return self.failure is None

    def load(self) -> None:
        """Read what was written down.

        Raises:
            OSError: it cannot be read, or the marker is to be removed, and cannot be.
        """
        marker = self.files.read_text(CLEAN_SHUTDOWN)
        self.clean = marker is not None and self._marker != "none"
        self.previous_broker_epoch = _number(marker, "brokerEpoch") if self.clean else -1
        self.previous_incarnation = _number(marker, "incarnation") if self.clean else -1
        self._high_watermarks = self._read(HIGH_WATERMARKS)
        self._recovery_points = self._read(RECOVERY_POINTS)
        self._log_starts = self._read(LOG_STARTS)
        self._cleaned = self._read(CLEANED)
        if marker is not None and self._marker in ("removed_first", "none"):
            self.files.remove(CLEAN_SHUTDOWN)

    def partitions(self) -> list[TopicPartition]:
        """Whose logs are here.

        Raises:
            OSError: it cannot be listed.
        """
        names = [name.rpartition("-") for name in self.files.list("")]
        return [TopicPartition(topic, int(number)) for topic, dash, number in names if dash and number.isdecimal()]

    def loaded(self) -> None:
        """The logs are open; now a marker goes that does not go first (KAFKA-10471).

        Raises:
            OSError: it cannot be removed.
        """
        if self.clean and self._marker == "removed_late":
            self.files.remove(CLEAN_SHUTDOWN)

    def high_watermark(self, name: TopicPartition) -> Offset:
        """As checkpointed; 0 when it never was."""
        return self._high_watermarks.get(name, 0)

    def checkpointed(self, name: TopicPartition) -> Checkpointed:
        """What else was written down about the log of ``name``."""
        return Checkpointed(self._log_starts.get(name, 0), self._recovery_points.get(name, 0), self.clean)

    def first_dirty_offset(self, name: TopicPartition) -> Offset:
        """Up to where, exclusive, the log of ``name`` is compacted."""
        return self._cleaned.get(name, 0)

    def write_first_dirty_offset(self, name: TopicPartition, offset: Offset) -> None:
        """Write down up to where a log is compacted, or has been cut.

        Raises:
            OSError: the old checkpoint is still there.
        """
        cleaned = self._cleaned | {name: offset}
        self.files.replace_text(CLEANED, format_offsets(cleaned), flush=True)
        self._cleaned = cleaned

    def write(self, checkpoint: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Write one of the three checkpoints.

        Raises:
            OSError: the old one is still there.
        """
        self.files.replace_text(checkpoint, format_offsets(offsets), flush=True)
        if checkpoint == RECOVERY_POINTS:
            self._recovery_points = dict(offsets)

    def forget(self, name: TopicPartition) -> None:
        """The log of ``name`` is deleted: forget what was written down about it, also on disk.

        Raises:
            OSError: an old checkpoint is still there.
        """
        for checkpoint, offsets in (
            (HIGH_WATERMARKS, self._high_watermarks),
            (RECOVERY_POINTS, self._recovery_points),
            (LOG_STARTS, self._log_starts),
            (CLEANED, self._cleaned),
        ):
            offsets.pop(name, None)
            written = self._read(checkpoint)
            if written.pop(name, None) is not None:
                self.files.replace_text(checkpoint, format_offsets(written), flush=True)

    def close(self, broker_epoch: int, incarnation: int) -> None:
        """Mark a clean shutdown after the last flush, with the broker epoch and (our own addition) the incarnation.

        Raises:
            OSError: that cannot be written.
        """
        if self._marker != "none":
            text = json.dumps({"version": 0, "brokerEpoch": broker_epoch, "incarnation": incarnation})
            self.files.replace_text(CLEAN_SHUTDOWN, text, flush=True)

    def _read(self, checkpoint: str) -> dict[TopicPartition, Offset]:
        text = self.files.read_text(checkpoint)
        try:
            return parse_offsets(text) if text is not None else {}
        except GarbledCheckpoint as error:
            self._say(f"Ignored the garbled {checkpoint} ({error}): its offsets are all 0.")
            return {}


def _number(marker: str | None, name: str) -> int:
    """A number of the marker; -1 where it has none, as before Kafka 3.8, or is garbled."""
    try:
        found = json.loads(marker or "")[name]
    except (ValueError, KeyError, TypeError, RecursionError):
        return -1
    return found if isinstance(found, int) else -1
