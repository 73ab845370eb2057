"""Stories of a controller alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.model import NodeId
from harness.replication.controller import Controller
from harness.replication.controller_messages import (
    ControllerEvent,
    ControllerStarted,
    ElectionRequested,
    HeartbeatReceived,
    IsrChangeRequested,
    ProducerIdsRequested,
    RegistrationRequested,
    ReplicaPlaced,
    TopicCreationRequested,
)
from harness.replication.knobs import GENERATIONS
from harness.replication.knobs import generation as knobs_of
from harness.replication.messages import (
    Tick,
)
from tests.harness.replication.printing import parse_options, parse_partition, print_controller_effect


class ControllerTeller:
    """Plays commands on a :class:`Controller` alone and prints every effect."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._knobs = GENERATIONS["3.7"]
        self._min_isr, self._unclean = 1, False
        self._controller = self._born(None)

    def _born(self, state: Mapping[str, Any] | None) -> Controller:
        return Controller(
            1_500,
            state,
            knobs=self._knobs,
            min_insync_replicas=self._min_isr,
            unclean_leader_election_enable=self._unclean,
        )

    def command(self, line: str) -> list[str]:
        name, *words = line.split()
        arguments, options = parse_options(words)
        event = getattr(self, f"_do_{name.replace('-', '_')}")(*arguments, **options)
        return [print_controller_effect(effect) for effect in self._controller.handle(event)]

    @property
    def _now_ns(self) -> int:
        return self._now_ms * 1_000_000

    def _do_start(
        self, *, generation: str = "3.7", min_isr: str = "1", unclean: str = "false", **overrides: str
    ) -> ControllerEvent:
        """Also a restart, from what was persisted."""
        self._knobs = knobs_of(generation, overrides)
        self._min_isr, self._unclean = int(min_isr), unclean == "true"
        self._controller = self._born(self._controller.to_state())
        return ControllerStarted(self._now_ns)

    def _do_register(self, broker: str, incarnation: str, *, previous: str = "-1") -> ControllerEvent:
        """``previous`` is the broker epoch of its last clean shutdown."""
        node = NodeId(int(broker))
        return RegistrationRequested("token", node, incarnation, f"host{broker}", 9092, self._now_ns, int(previous))

    def _do_elect(self, partition: str, *, leader: str = "", unclean: str = "false") -> ControllerEvent:
        wanted = NodeId(int(leader)) if leader else None
        return ElectionRequested("token", parse_partition(partition), wanted, unclean == "true", self._now_ns)

    def _do_heartbeat(self, broker: str, epoch: str) -> ControllerEvent:
        return HeartbeatReceived("token", NodeId(int(broker)), int(epoch), self._now_ns)

    def _do_tick(self, ms: str) -> ControllerEvent:
        self._now_ms += int(ms)
        return Tick(self._now_ns)

    def _do_create(
        self, topic: str, *, partitions: str = "-1", factor: str = "-1", assign: str = ""
    ) -> ControllerEvent:
        rows = [tuple(NodeId(int(node)) for node in row.split(",") if node) for row in assign.split("/")]
        return TopicCreationRequested("token", topic, int(partitions), int(factor), tuple(rows) if assign else None)

    def _do_propose(
        self, broker: str, partition: str, isr: str, *, epoch: str, version: str, broker_epoch: str, members: str = ""
    ) -> ControllerEvent:
        """``members`` are the broker epochs of the ISR's members, as the leader knows them."""
        nodes = tuple(NodeId(int(node)) for node in isr.split(",") if node != "none")
        known = tuple(int(one) for one in members.split(",") if one)
        return IsrChangeRequested(
            "token",
            NodeId(int(broker)),
            int(broker_epoch),
            parse_partition(partition),
            int(epoch),
            int(version),
            nodes,
            known,
        )

    def _do_place(self, broker: str, epoch: str, partition: str) -> ControllerEvent:
        """The replica is in another log directory now."""
        return ReplicaPlaced("token", NodeId(int(broker)), int(epoch), parse_partition(partition))

    def _do_producer_ids(self, broker: str, epoch: str) -> ControllerEvent:
        return ProducerIdsRequested("token", NodeId(int(broker)), int(epoch))
