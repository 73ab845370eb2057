"""What the configuration of one run says: its generation, what it guarantees, and which partitions there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from checkers.views.about_run import AboutRun
from checkers.views.expected import Expected
from harness.model import TopicPartition


@dataclass(frozen=True)
class Configured(AboutRun):
    """What is configured.

    Attributes:
        guarantees: what is promised, as in ``run.json``.
        wanted: the nodes and partitions that there should be; None: the configuration does not say.
        generation: the protocol's generation; empty: not known.
    """

    guarantees: Mapping[str, Any]
    wanted: Expected | None
    generation: str

    @property
    def sampled(self) -> bool:
        """Whether the timeline consists of samples of the brokers' states (:mod:`checkers.views.sampled_timelines`)."""
        return is_sampled(self.guarantees)

    @property
    def is_virtual(self) -> bool:
        """Whether the time of the run is virtual, so that nothing is late because a machine is busy."""
        return is_virtual(self.guarantees)

    def replication(self, place: TopicPartition) -> int | None:
        """How many replicas the partition has; None: the configuration does not state it."""
        demanded = None if self.wanted is None else self.wanted.partitions.get(place)
        return None if demanded is None else demanded.number

    def least_isr(self, place: TopicPartition) -> int | None:
        """The smallest ISR in which acks=all is acknowledged; None: the configuration does not state it."""
        least, replicas = self.guarantees.get("min_insync_replicas"), self.replication(place)
        return None if not isinstance(least, int) or replicas is None else min(least, replicas)


def is_watched(configured: Configured) -> bool:
    """Whether brokers were there to be asked; not of an imported history, which only clients recorded."""
    return configured.wanted is None or configured.wanted.brokers


def is_sampled(guarantees: Mapping[str, Any]) -> bool:
    """Whether a run's timeline consists of samples of the brokers' states."""
    return guarantees.get("timeline") == "sampled"


def is_virtual(guarantees: Mapping[str, Any]) -> bool:
    """Whether a run was in virtual time."""
    return guarantees.get("time") == "virtual"


def lag_allowed_ns(guarantees: Mapping[str, Any]) -> int | None:
    """How long a replica that lags may stay in the ISR; None: the run does not state it, or its timeline is sampled."""
    allowed_ms = guarantees.get("laggards_leave_ms")
    return None if not isinstance(allowed_ms, int) or is_sampled(guarantees) else allowed_ms * 1_000_000


def members_kept_ns(guarantees: Mapping[str, Any]) -> int | None:
    """How long at least a coordinator keeps a silent member of a classic group; None: the run does not state it."""
    kept_ms = guarantees.get("members_kept_ms")
    return kept_ms * 1_000_000 if isinstance(kept_ms, int) else None


def isr_wanted(guarantees: Mapping[str, Any]) -> int | None:
    """How large an ISR has to be for acks=all; None: any will do, or it is not stated or sampled."""
    least = guarantees.get("min_insync_replicas")
    return None if not isinstance(least, int) or least <= 1 or is_sampled(guarantees) else least
