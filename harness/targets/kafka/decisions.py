"""The decisions of a real cluster's controller, in order: leaders, ISRs and broker sessions.

The harness reads them from the controller's disk while the controller writes them: from KRaft's metadata log, or
ZooKeeper's transaction log. So it misses none, sends no request, and sees those of a dead controller, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from harness.model import NO_LEADER, NodeId, TopicPartition
from harness.replication.controller_messages import PartitionState
from harness.target import PartitionView

SessionChange = Literal["registered", "returned", "expired"]
"""A broker's session began after a new registration, began again without one, or ended."""


@dataclass(frozen=True, slots=True)
class PartitionDecision:
    """A partition changed.

    Attributes:
        before: None for one that has been created.
        controller_epoch: of the controller that decided.
        wall_ms: the time by that controller's clock.
        source: its place in the log.
        places: whether it is about the log directories of replicas, which a broker has reported (KIP-858).
    """

    before: PartitionState | None
    after: PartitionState
    controller_epoch: int
    wall_ms: int
    source: str
    places: bool = False


@dataclass(frozen=True, slots=True)
class SessionDecision:
    """A broker's session began or ended; ``wall_ms`` and ``source`` as of a :class:`PartitionDecision`."""

    broker: NodeId
    change: SessionChange
    wall_ms: int
    source: str


@dataclass(frozen=True, slots=True)
class ControllerDecision:
    """The KRaft quorum has elected an active controller.

    Attributes:
        controller: the active one from now on.
        controller_epoch: its epoch.
        voters: the members of the quorum.
        wall_ms: the time by its clock.
        source: its place in the log.
    """

    controller: NodeId
    controller_epoch: int
    voters: tuple[NodeId, ...]
    wall_ms: int
    source: str


Decision = PartitionDecision | SessionDecision | ControllerDecision


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A power loss took the last decisions from the log: the harness had read them before they were flushed.

    No broker had acted on them: a controller flushes a decision before it sends it.
    """

    decisions: Sequence[Decision]


class ControllerLog(Protocol):
    """The log of a controller, read from its beginning."""

    def read_on(self) -> Sequence[Decision | Withdrawal]:
        """The decisions since the last call, preceded by withdrawals of earlier ones."""
        ...

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionState]:
        """Every partition, as of what has been read."""
        ...

    @property
    def live(self) -> Sequence[NodeId]:
        """The brokers with a session, as of what has been read, in order."""
        ...

    @property
    def controller(self) -> NodeId | None:
        """The active KRaft controller, as of what has been read; None: there was none yet, or ZooKeeper is used."""
        ...


def partition_view(state: PartitionState) -> PartitionView:
    """A partition as the runner and the faults see it."""
    return PartitionView(state.leader, state.leader_epoch, state.isr, state.replicas, state.elr)


def decision_row(decision: Decision) -> dict[str, Any]:
    """The columns of ``schema.TIMELINE`` that a decision fills, for a row of node ``controller``."""
    if isinstance(decision, SessionDecision):
        said: dict[str, Any] = {"broker": decision.broker, "change": decision.change, "source": decision.source}
        return {"kind": "session", "wall_ms": decision.wall_ms, "detail": json.dumps(said)}
    if isinstance(decision, ControllerDecision):
        said = {
            "controller": decision.controller,
            "controller_epoch": decision.controller_epoch,
            "voters": list(decision.voters),
            "source": decision.source,
        }
        return {"kind": "controller", "wall_ms": decision.wall_ms, "detail": json.dumps(said)}
    before, after = decision.before, decision.after
    detail: dict[str, Any] = {"controller_epoch": decision.controller_epoch, "cause": decision.source}
    if after.elr or after.last_known_elr:
        detail |= {"elr": list(after.elr), "last_known_elr": list(after.last_known_elr)}
    if decision.places:
        detail |= {"places": True}
    if before is not None and before.leader == after.leader:
        kind, detail = "isr", detail | {"previous_isr": list(before.isr)}
    else:
        kind, detail = "election", detail | _election(before, after)
    topic, partition = after.topic_partition
    return {
        "kind": kind,
        "wall_ms": decision.wall_ms,
        "topic": topic,
        "partition": partition,
        "leader": after.leader,
        "leader_epoch": after.leader_epoch,
        "partition_epoch": after.partition_epoch,
        "isr": list(after.isr),
        "detail": json.dumps(detail),
    }


def _election(before: PartitionState | None, after: PartitionState) -> dict[str, Any]:
    """An election is clean when the new leader was in the ISR or in the ELR, or when there is no leader."""
    if before is None:
        return {"clean": True, "elected_from_isr": True, "previous_leader": NO_LEADER}
    from_isr = after.leader in before.isr
    clean = from_isr or after.leader in before.elr or after.leader == NO_LEADER
    return {"clean": clean, "elected_from_isr": from_isr, "previous_leader": before.leader}
