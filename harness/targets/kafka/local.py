"""Parses ``process:RELEASE#control``: a Kafka release, and which nodes of its cluster are controllers."""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import UsageError
from harness.spelling import closest
from harness.targets.kafka.fetching import Distribution
from harness.targets.kafka.fetching import find as find_distribution
from harness.targets.kafka.layout import Control
from harness.targets.kafka.releases import Metadata, Release

CONTROL_MARK = "#"
"""Between the release, or its path, and the kind of control: ``4.1.0#quorum``."""

_LEAST_COMBINED = 3
"""The fewest voters that tolerate the loss of one."""


@dataclass(frozen=True, slots=True)
class LocalKafka:
    """A release, and which nodes are controllers."""

    distribution: Distribution
    control: Control = Control.ONE

    @property
    def release(self) -> Release:
        """Which release it is."""
        return self.distribution.release

    def refuse_few(self, brokers: int) -> None:
        """Refuse too few combined nodes.

        Raises:
            UsageError: they are too few.
        """
        if self.control is Control.COMBINED and brokers < _LEAST_COMBINED:
            raise UsageError(
                f"cluster.brokers: {brokers}, and {_LEAST_COMBINED} nodes at least are needed to be brokers and a "
                "quorum of controllers of which one may be away.",
                f"Leave {CONTROL_MARK}{self.control.value} out of the target.",
            )


def find(spelling: str) -> LocalKafka:
    """What ``spelling`` means: a release or the path of an unpacked one, with ``#quorum``, ``#combined`` or nothing.

    Raises:
        UsageError: it means neither, or this release has no controllers of that kind.
        EnvironmentFault: the release has not been fetched.
    """
    kafka, mark, asked = spelling.partition(CONTROL_MARK)
    known = [one.value for one in Control if one is not Control.ONE]
    if mark and asked not in known:
        raise UsageError(f"target process:{spelling}: controllers cannot be {asked!r}; {closest(asked, known)}")
    found = LocalKafka(find_distribution(kafka), Control(asked) if mark else Control.ONE)
    if mark and found.release.metadata is Metadata.ZOOKEEPER:
        raise UsageError(
            f"target process:{spelling}: Kafka {found.release.version} keeps its state in ZooKeeper, and has no quorum "
            "of controllers.",
            f"Take 3.3 or later, where KRaft was declared ready for production (KIP-833), or leave {mark}{asked} out.",
        )
    return found
