"""several_workloads: workloads beside one another, on the same partitions.

Each part has its own clients, and draws from the seed of the run for itself. What they have in common, the records of a
schedule and the final read, is a parameter of the whole.

Promised: what its parts are promised, each by itself; a promise that one part gives up, such as that no record is
stored twice, is given up for all, for a record does not say which part has sent it.

Judged: as under each of its parts.

Missed: what each of its parts misses, but for what the others bring; and what one part excuses for another: the
loss of a record in a partition whose records are deleted, and, unless every part numbers its records, a duplicate that
a fault or an election may have made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from pydantic import Field, field_validator

from harness.client_ports import ClientContext
from harness.errors import UsageError
from harness.model import Offset, TopicPartition
from harness.spelling import closest
from harness.target import TopicSpec
from harness.validation import validated
from harness.workload import Circumstances, Waits, Workload, WorkloadKind, WorkloadParameters

_NAME = "several_workloads"
_APART = 1_000_003


class SeveralWorkloadsParameters(WorkloadParameters):
    """What a scenario may write about the workload.

    Attributes:
        parts: workloads as a scenario names them, each kind once: ``[{name: unique_sends, rate: 20}, ...]``.
    """

    kinds: ClassVar[Mapping[str, WorkloadKind[Any]]] = {}
    """Those that a scenario can name; the package sets them when it knows all."""

    parts: tuple[Mapping[str, Any], ...] = Field(min_length=1)

    @field_validator("parts")
    @classmethod
    def _names_workloads(cls, parts: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        names = [one.get("name") for one in parts]
        if None in names:
            raise ValueError("a part has no name")
        for name in names:
            if name == _NAME or names.count(name) > 1:
                raise ValueError(f"{name!r} is there twice, or within itself")
        for one in parts:
            if "client" in one:
                raise ValueError(f"{one['name']!r} has a client of its own; all parts have that of the whole")
            try:
                if cls._parsed(one).stands_alone:
                    raise ValueError(f"{one['name']!r} cannot be a part")
            except UsageError as error:
                raise ValueError(error.sentence.rstrip(".")) from None
        return parts

    @property
    def loads(self) -> list[tuple[str, WorkloadParameters]]:
        """The name and the parameters of each part, with the client of the whole."""
        parsed = [(str(one["name"]), self._parsed(one)) for one in self.parts]
        return [(name, load.model_copy(update={"client": self.client})) for name, load in parsed]

    @property
    def has_background_load(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return any(load.has_background_load for _, load in self.loads)

    @property
    def answered_within_s(self) -> float:
        """See :class:`harness.workload.WorkloadParameters`."""
        return max(load.answered_within_s for _, load in self.loads)

    @property
    def numbers_records(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return all(load.numbers_records for _, load in self.loads)

    @property
    def acknowledges_in_turn(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return all(load.acknowledges_in_turn for _, load in self.loads)

    @property
    def asked_acks(self) -> frozenset[int]:
        """See :class:`harness.workload.WorkloadParameters`."""
        return frozenset().union(*(load.asked_acks for _, load in self.loads if load.has_background_load))

    @property
    def held_for_s(self) -> float:
        """See :class:`harness.workload.WorkloadParameters`."""
        return max(load.held_for_s for _, load in self.loads)

    @property
    def session_s(self) -> float | None:
        """See :class:`harness.workload.WorkloadParameters`."""
        return min((load.session_s for _, load in self.loads if load.session_s is not None), default=None)

    @property
    def assigned_by_coordinators(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return any(load.assigned_by_coordinators for _, load in self.loads)

    @property
    def transacts(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return any(load.transacts for _, load in self.loads)

    @property
    def deletes_records(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return any(load.deletes_records for _, load in self.loads)

    @property
    def must_kill_clients(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return any(load.must_kill_clients for _, load in self.loads)

    def own_topics(self, topics: Sequence[TopicSpec]) -> Sequence[TopicSpec]:
        """See :class:`harness.workload.WorkloadParameters`."""
        return [own for _, load in self.loads for own in load.own_topics(topics)]

    @property
    def guarantees(self) -> Mapping[str, bool | int]:
        """See :class:`harness.workload.WorkloadParameters`."""
        return {name: what for _, load in self.loads for name, what in load.guarantees.items()}

    def refuse(self, found: Circumstances) -> None:
        """See :class:`harness.workload.WorkloadParameters`."""
        for _, load in self.loads:
            load.refuse(found)

    @property
    def appends_once(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return all(load.appends_once for _, load in self.loads if load.has_background_load)

    @property
    def largest_size(self) -> int:
        """See :class:`harness.workload.WorkloadParameters`."""
        return max(self.size, *(load.largest_size for _, load in self.loads))

    def without_numbers(self) -> Self:
        """See :class:`harness.workload.WorkloadParameters`."""
        kept = {name: load.without_numbers().model_dump(mode="json", exclude={"client"}) for name, load in self.loads}
        parts = [{"name": name, **load} for name, load in kept.items()]
        return self.model_copy(update={"parts": tuple(parts)})

    @classmethod
    def _parsed(cls, part: Mapping[str, Any]) -> WorkloadParameters:
        """The parameters of a part.

        Raises:
            UsageError: an unknown workload, key or value.
        """
        name = str(part["name"])
        if name not in cls.kinds:
            raise UsageError(f"unknown workload {name!r}; {closest(name, cls.kinds)}")
        parameters = {key: one for key, one in part.items() if key != "name"}
        parsed: WorkloadParameters = validated(cls.kinds[name].parameters, parameters, name)
        return parsed


class SeveralWorkloads(Workload):
    """Runs its parts beside one another."""

    def __init__(self, parameters: SeveralWorkloadsParameters, context: ClientContext) -> None:
        super().__init__(context)
        self._parts: list[Workload] = [
            parameters.kinds[name].make(load, replace(context, seed=context.seed * _APART + place))
            for place, (name, load) in enumerate(parameters.loads)
        ]

    def start(self) -> None:
        """See :class:`harness.workload.Workload`."""
        for part in self._parts:
            part.start()

    def polled(self) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.workload.Workload`: the furthest consumer's, of whichever part."""
        reached = [part.polled() for part in self._parts]
        return {name: max(one[name] for one in reached) for name in self.context.partitions}

    def take_over(self) -> Waits:
        """See :class:`harness.workload.Workload`."""
        waiting = [part.take_over() for part in self._parts]
        return lambda: {words: names for waits in waiting for words, names in waits().items()}

    def finish(self, report: Callable[[str], None]) -> None:
        """See :class:`harness.workload.Workload`."""
        for part in self._parts:
            part.finish(report)

    def end(self) -> None:
        """See :class:`harness.workload.Workload`."""
        for part in self._parts:
            part.end()

    def stop(self) -> None:
        """See :class:`harness.workload.Workload`."""
        for part in self._parts:
            part.clients.stop()
        for part in self._parts:
            part.stop()
        super().stop()


KIND = WorkloadKind(
    _NAME,
    SeveralWorkloadsParameters,
    SeveralWorkloads,
    {
        "parts": [
            {"name": "unique_sends", "rate": 20, "producers": 2, "consumers": 1},
            {"name": "consumer_groups", "rate": 20, "producers": 1, "members": 2, "session_timeout_s": 1, "stays_s": 2},
        ]
    },
)
