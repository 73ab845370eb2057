"""The log of a schedule: its records by the scenario's names, and what only the schedule observed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from harness.model import NodeId, Offset, TopicPartition, partition_named
from harness.orders import Consumed, Sent
from harness.steps import Send

_SENTENCES = ("unavailable", "leaderless", "unsettled", "exited")

Values = dict[TopicPartition, dict[str, int]]
"""By partition and name, the value of a record."""


@dataclass(slots=True)
class Group:
    """A consumer group: the values that its members were given, and its position on each partition."""

    given: dict[TopicPartition, set[int]] = field(default_factory=lambda: defaultdict(set))
    position: dict[TopicPartition, Offset] = field(default_factory=dict)


class ScheduleLog:
    """Written while a schedule is executed, and read when its outcome is described.

    Attributes:
        values: of every record whose send step has ended.
        orders: by producer and partition, the records in the order of sending, each with its offset; None: unknown.
        replicas: by partition, the brokers to which the controller has assigned it.
        groups: by name.
        unavailable: evidence that a partition had no leader, one sentence each.
        leaderless: the partitions that had no leader when the cluster was to be whole again.
        unsettled: what kept the healed cluster from being whole, one phrase each.
        exited: evidence of brokers that had by then exited as their protocol requires.
    """

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.values: Values = {partition: {} for partition in partitions}
        self.orders: dict[tuple[str, TopicPartition], list[tuple[str, Offset | None]]] = defaultdict(list)
        self.replicas: dict[TopicPartition, tuple[NodeId, ...]] = {}
        self.groups: dict[str, Group] = defaultdict(Group)
        self.unavailable: list[str] = []
        self.leaderless: list[str] = []
        self.unsettled: list[str] = []
        self.exited: list[str] = []
        self._sent = dict.fromkeys(self.values, 0)

    def sending(self, partitions: Sequence[TopicPartition], send: Send) -> Mapping[TopicPartition, Sequence[str]]:
        """Records are about to be sent, which determines their place in their producer's order.

        Returns:
            Their names: the scenario's, or ``m<n>``, numbered per partition.
        """
        names = {}
        for partition in partitions:
            first = self._sent[partition]
            names[partition] = send.records or tuple(f"m{first + number}" for number in range(send.count))
            self._sent[partition] += send.count
            if send.producer is not None:
                self.orders[send.producer, partition].extend((name, None) for name in names[partition])
        return names

    def answered(
        self, producer: str | None, names: Mapping[TopicPartition, Sequence[str]], answers: Sequence[Sent]
    ) -> None:
        """Records have been answered; ``answers`` are in the order of ``names``, partition by partition.

        The end of a transaction has the answers of its earlier records, too, which come first.
        """
        for partition, expected in names.items():
            ours = [answer for answer in answers if answer.partition == partition]
            ours = ours[max(0, len(ours) - len(expected)) :]
            offsets: dict[str, Offset | None] = {}
            for name, answer in zip(expected, ours, strict=False):
                self.values[partition][name] = answer.value
                offsets[name] = answer.offset
            if producer is not None:
                order = self.orders[producer, partition]
                order[:] = [(name, offsets.get(name, offset)) for name, offset in order]

    def consumed(self, group: str, consumed: Consumed) -> None:
        """A member of ``group`` has read."""
        for partition, values in consumed.values.items():
            self.groups[group].given[partition].update(value for value in values if value is not None)
        self.groups[group].position.update(consumed.positions)

    def committed(self, group: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Offsets were committed for ``group``, read or not."""
        self.groups[group].position.update(offsets)

    def names(self, partition: TopicPartition) -> dict[int, str]:
        """By value, the names of the records of ``partition``."""
        return {value: name for name, value in self.values.get(partition, {}).items()}

    def to_json(self) -> dict[str, Any]:
        """As plain data; see :meth:`from_json`."""
        return {
            "values": {str(name): known for name, known in self.values.items()},
            "orders": [[producer, str(name), records] for (producer, name), records in self.orders.items()],
            "replicas": {str(name): list(nodes) for name, nodes in self.replicas.items()},
            "groups": {
                group: {
                    "given": {str(name): sorted(values) for name, values in one.given.items()},
                    "position": {str(name): offset for name, offset in one.position.items()},
                }
                for group, one in self.groups.items()
            },
            **{name: getattr(self, name) for name in _SENTENCES},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_json`."""
        schedule_log = cls(map(partition_named, document["values"]))
        schedule_log.values = {partition_named(name): dict(known) for name, known in document["values"].items()}
        for producer, name, records in document["orders"]:
            schedule_log.orders[producer, partition_named(name)] = [(record, offset) for record, offset in records]
        for name, nodes in document.get("replicas", {}).items():
            schedule_log.replicas[partition_named(name)] = tuple(map(NodeId, nodes))
        for group, one in document["groups"].items():
            for name, values in one["given"].items():
                schedule_log.groups[group].given[partition_named(name)].update(values)
            positions = {partition_named(name): offset for name, offset in one["position"].items()}
            schedule_log.groups[group].position.update(positions)
        for name in _SENTENCES:
            setattr(schedule_log, name, list(document.get(name, ())))
        return schedule_log
