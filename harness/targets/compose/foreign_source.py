"""Answers the plan's questions about a compose file with brokers of another make before any container starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from harness.fault import Fault
from harness.scenario import Scenario
from harness.spelling import as_text
from harness.target import Target
from harness.targets.bootstrap.kind import Bootstrap, RunningCluster, Told
from harness.targets.compose.foreign_stack import ForeignStack
from harness.targets.compose.foreign_target import OF_ONE_RUN, ForeignTarget
from harness.targets.leftovers import StartJournal
from harness.targets.system import SpokenProtocol, System, Unsupported


@dataclass(frozen=True, slots=True)
class ForeignCluster(RunningCluster):
    """Brokers of another make that seawall starts, harms as containers, and looks at by clients alone.

    Attributes:
        stack: the compose file.
        written: the settings that the scenario has.
    """

    stack: ForeignStack
    written: Mapping[str, object]

    @property
    def name(self) -> str:
        """See :class:`harness.targets.system.System`."""
        return f"what {self.stack.file.path} runs"

    def begins(self, brokers: int) -> str:
        """See :class:`harness.targets.system.System`."""
        del brokers
        images = ", ".join(sorted({broker.image for broker in self.stack.file.brokers}))
        number = len(self.stack.file.brokers)
        return (
            f"starting {number} broker{'s' if number != 1 else ''} of image {images}, which is no Kafka that seawall "
            "looks into: clients alone see what it does"
        )

    @property
    def controls(self) -> frozenset[type[Target]]:
        """See :class:`harness.targets.system.System`."""
        return self.stack.controls

    @property
    def is_heavy(self) -> bool:
        """See :class:`harness.targets.system.System`."""
        return True

    def unsupported(self, fault: Fault) -> Unsupported | None:
        """See :class:`harness.targets.system.System`."""
        return self.stack.unsupported(self.spelling, fault)

    def configuration(self) -> Mapping[str, Any]:
        """See :class:`harness.targets.system.System`."""
        controls = sorted(one.__name__ for one in self.controls)
        return {**RunningCluster.configuration(self), "controls": controls, "compose": self.stack.in_words()}

    def target(self, directory: Path, seed: int, journal: StartJournal) -> Target:
        """See :class:`harness.targets.system.System`."""
        promised = {name: as_text(value) for name, value in self._promised().items()}
        return ForeignTarget(directory, self.stack, promised, self.written, journal)


@dataclass(frozen=True, slots=True)
class ForeignSource(Bootstrap):
    """Implements :class:`harness.targets.system.SystemSource`: a cluster as clients see it, in containers."""

    stack: ForeignStack

    def system(self, spelling: str, protocol: SpokenProtocol, scenario: Scenario) -> System:
        """See :class:`harness.targets.system.SystemSource`."""
        running = Bootstrap.system(self, spelling, protocol, scenario)
        known = {field.name: getattr(running, field.name) for field in fields(RunningCluster)}
        return ForeignCluster(**known, stack=self.stack, written=scenario.cluster.settings)


def source_of(stack: ForeignStack) -> ForeignSource:
    """What makes a system of it, which promises Kafka's defaults: brokers that do not run yet do not say."""
    told = Told(tuple(range(len(stack.file.brokers))), {})
    return ForeignSource(replace(OF_ONE_RUN, client=stack.client), told, stack)
