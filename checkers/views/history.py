"""What the clients of one run did, by the rows of its history; as plain as possible, not fast.

With :mod:`checkers.views.timeline`, :mod:`checkers.views.replica_logs` and :mod:`checkers.views.partition_ends` it is
the executable specification that the Spark engine is tested against.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from checkers.views.final_reads import Ended, ended, is_superseded, readers
from checkers.views.row import Read, Row, Send, is_malformed, read_of, sends, where
from harness.model import TopicPartition


@dataclass(frozen=True)
class History:
    """What clients did.

    Attributes:
        rows: every row of the table.
        watermarks: by partition, the high watermark of the leader in the end, up to which the final read should come;
            without partitions that have no leader then.
    """

    run: str
    rows: Sequence[Row]
    watermarks: Mapping[TopicPartition, int | None]

    @cached_property
    def operations(self) -> list[Row]:
        """The rows of the history that are well formed; ``final`` only those since :attr:`final_since`."""
        begun = self.final_since
        return [{**row, "final": False} if is_superseded(row, begun) else row for row in self._well_formed]

    @cached_property
    def _well_formed(self) -> list[Row]:
        return [row for row in self.rows if not is_malformed(row)]

    @cached_property
    def final_since(self) -> dict[TopicPartition, int]:
        """By partition, the row at which its final read begins."""
        return {place: ended.since for place, ended in self.final_readers.items()}

    @cached_property
    def final_readers(self) -> dict[TopicPartition, Ended]:
        """By partition, from which row on the final read was there, and how far it came."""
        return ended(readers(self._well_formed), self.watermarks)

    @cached_property
    def sends(self) -> list[Send]:
        """Every send."""
        return [send for (place, _), group in self._sent.items() for send in sends(place, group)]

    def sends_of(self, place: TopicPartition, value: int) -> list[Send]:
        """The sends of one value, which is one unless it was sent, or acknowledged, more than once."""
        group = self._sent.get((place, value))
        return list(sends(place, group)) if group else []

    @cached_property
    def resent(self) -> set[tuple[TopicPartition, int]]:
        """The values that are sent to a partition by several operations, or steps of one."""
        return {key for key, group in self._sent.items() if len({(row["op"], row["mop"]) for row in group}) > 1}

    @cached_property
    def _sent(self) -> dict[tuple[TopicPartition, int], list[Row]]:
        rows: dict[tuple[TopicPartition, int], list[Row]] = defaultdict(list)
        for row in self.operations:
            if row["f"] == "send":
                rows[where(row), row["value"]].append(row)
        return rows

    @cached_property
    def transactional(self) -> dict[tuple[TopicPartition, int], Send]:
        """The sends that belong to transactions; of one at several offsets any."""
        return {(send.where, send.value): send for send in self.sends if send.txn}

    @cached_property
    def marked(self) -> set[TopicPartition]:
        """The partitions to which transactions send, so that markers take offsets there."""
        return {send.where for send in self.sends if send.txn}

    def is_uncommitted(self, send: Send) -> bool:
        """Whether the send belongs to a transaction that failed, or is not known to be committed."""
        if not send.txn or send.type == "ok":
            return False
        return send.type == "fail" or not self.was_delivered(send)

    def was_delivered(self, send: Send) -> bool:
        """Whether a poll delivered the record; a record of a transaction, a read_committed poll."""
        return (send.where, send.value) in (self._committed_values if send.txn else self.read_values)

    @cached_property
    def _committed_values(self) -> set[tuple[TopicPartition, int | None]]:
        return {(read.where, read.value) for read in self.reads if read.read_committed}

    @cached_property
    def reads(self) -> list[Read]:
        """Every record that a poll delivered, in the order of the history."""
        polls = [r for r in self.operations if r["f"] == "poll" and r["type"] != "invoke"]
        rows = [r for r in polls if r["topic"] is not None]
        return [read_of(row) for row in sorted(rows, key=lambda r: int(r["index"]))]

    @cached_property
    def delivered(self) -> dict[tuple[TopicPartition, int, int | None], list[Read]]:
        """Every delivery of a record: by partition, offset and value."""
        found: dict[tuple[TopicPartition, int, int | None], list[Read]] = defaultdict(list)
        for read in self.reads:
            found[read.where, read.offset, read.value].append(read)
        return found

    @cached_property
    def final_read(self) -> dict[TopicPartition, dict[int, list[int | None]]]:
        """What the final read delivered: by partition and offset, the values in order."""
        found: dict[TopicPartition, dict[int, list[int | None]]] = defaultdict(lambda: defaultdict(list))
        for read in self.reads:
            if read.final:
                found[read.where][read.offset].append(read.value)
        return found

    @cached_property
    def read_in_the_end(self) -> dict[tuple[TopicPartition, int | None], int]:
        """The lowest offset at which the final read delivered a value: by partition and value."""
        found: dict[tuple[TopicPartition, int | None], int] = {}
        for place, offsets in self.final_read.items():
            for offset in sorted(offsets, reverse=True):
                found.update(((place, value), offset) for value in offsets[offset])
        return found

    def in_final_read(self, place: TopicPartition, offset: int, value: int) -> bool:
        """Whether the final read delivered ``value`` at ``offset``."""
        return value in self.final_read.get(place, {}).get(offset, [])

    def replacement(self, place: TopicPartition, offset: int) -> int | None:
        """The lowest value that the final read delivered at ``offset``; None for none."""
        return min((v for v in self.final_read.get(place, {}).get(offset, []) if v is not None), default=None)

    @cached_property
    def was_read(self) -> bool:
        """Whether a poll of the final read completed, empty or not."""
        return any(r["f"] == "poll" and r["type"] == "ok" and r["final"] for r in self.operations)

    @cached_property
    def read_values(self) -> set[tuple[TopicPartition, int | None]]:
        """Every value that a poll delivered, wherever from its partition."""
        return {(read.where, read.value) for read in self.reads}

    @cached_property
    def final_values(self) -> set[tuple[TopicPartition, int | None]]:
        """Every value that the final read delivered, wherever from its partition."""
        return {(read.where, read.value) for read in self.reads if read.final}
