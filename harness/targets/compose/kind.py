"""Resolves ``--target compose:FILE``: whether the brokers of the file are Apache Kafka's, or of another make.

They are Kafka's where the variables of a service say so and its image has Kafka in it. Other brokers are looked at by
clients alone, and so are those that a label names (:data:`harness.targets.compose.foreign_file.LISTENER`), and those
that let in only clients with certain properties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from harness.controls import DiskContents, DiskSpace, Kills, Links, Pauses, Power, Shutdowns, WallClocks
from harness.errors import UsageError
from harness.model import CLIENTS
from harness.target import Target, includes
from harness.targets.bootstrap.kind import KIND as RUNNING
from harness.targets.compose import foreign_stack, inspected_stack
from harness.targets.compose.compose_file import has_kafka
from harness.targets.compose.foreign_file import names_listeners
from harness.targets.compose.foreign_source import source_of
from harness.targets.compose.foreign_stack import ForeignStack
from harness.targets.compose.image import NoKafka
from harness.targets.compose.inspected_stack import InspectedStack
from harness.targets.compose.kafka_source import ComposeSource
from harness.targets.compose.leftovers import NAME, remove, remove_lost
from harness.targets.compose.stack_file import StackFile
from harness.targets.compose.written_stack import MARK, WrittenStack, read
from harness.targets.kafka.source_kind import OneRelease
from harness.targets.leftovers import Leftovers
from harness.targets.system import SystemSource
from harness.targets.target_kind import Timeline, Tried

_IN_WORDS: Mapping[type[Target], str] = {
    Kills: "kill",
    Shutdowns: "stop",
    Pauses: "pause",
    Links: "partition",
    DiskSpace: "full disk",
    WallClocks: "clock",
    Power: "power loss",
    DiskContents: "damage to logs",
}
"""What faults do."""


class Found(NamedTuple):
    """A compose file whose brokers have been found.

    Attributes:
        stack: what they are, and what can be done to them.
        source: what makes a system of it.
    """

    stack: InspectedStack | ForeignStack
    source: SystemSource


def find(argument: str) -> Found:
    """The brokers that a compose file runs; inspects its images, and pulls or builds missing ones.

    Args:
        argument: as of :func:`harness.targets.compose.written_stack.read`.

    Raises:
        UsageError: the file is not understood.
        EnvironmentFault: there is no Docker engine or no Compose, or an image is unavailable.
    """
    written = read(argument)
    if written.client.values or names_listeners(written.stack) or not has_kafka(written.stack, written.pattern):
        return _foreign(written)
    try:
        kafka = inspected_stack.find(written)
    except NoKafka as missing:
        try:
            return _foreign(written)
        except UsageError as refused:
            why = f"{missing.sentence.removesuffix('.')}, and {refused.sentence}"
            raise UsageError(why, refused.remedy) from None
    return Found(kafka, OneRelease(ComposeSource(kafka)))


def _foreign(written: WrittenStack) -> Found:
    foreign = foreign_stack.find(written)
    return Found(foreign, source_of(foreign))


@dataclass(frozen=True, slots=True)
class ComposeKind:
    """How ``--target`` spells it; the others are those of :class:`harness.targets.target_kind.TargetKind`.

    Attributes:
        find: see :func:`find`.
    """

    in_virtual_time: ClassVar[bool] = False
    runs_releases: ClassVar[bool] = True
    needs_loopback: ClassVar[bool] = False
    name: ClassVar[str] = NAME
    argument: ClassVar[str] = "FILE"
    leftovers: ClassVar[Leftovers] = Leftovers("containers", remove, remove_lost)

    find: Callable[[str], Found] = find

    @property
    def spelling(self) -> str:
        """As messages show it."""
        return f"{self.name}:{self.argument}"

    def source(self, argument: str) -> SystemSource:
        """What makes a system of the file that the argument names. Raises as :func:`find`."""
        return self.find(argument).source

    def may_combine(self, argument: str) -> bool:
        """Always: that is in the file, which a recorded run does not have."""
        del argument
        return True

    def timeline(self, configuration: Mapping[str, Any]) -> Timeline:
        """See :class:`harness.targets.target_kind.TargetKind`: what clients alone have seen is no state of a broker."""
        recorded = configuration.get("compose") or {}
        return RUNNING.timeline(configuration) if recorded.get("seen_by") == CLIENTS else "sampled"

    def with_pattern(self, argument: str, pattern: str) -> str:
        """The argument with a pattern of the names of the services that are brokers."""
        return f"{argument}{MARK}{pattern}"

    def tried(self, argument: str) -> Iterator[Tried]:
        """See :class:`harness.targets.target_kind.TargetKind`: its images are looked into."""
        stack = self.find(argument).stack
        file: StackFile = stack.file
        for node, broker in enumerate(file.brokers):
            yield Tried(f"broker {node}", True, f"service {broker.name!r} of image {broker.image}")
        for control, what in _IN_WORDS.items():
            can = includes(stack.controls, control)
            why = stack.lacks.get(control, "").removesuffix(".")
            yield Tried(what, can or None, "possible" if can else f"not possible: {why}")


KIND = ComposeKind()
