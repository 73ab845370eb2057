"""Real Kafka as a target: every release as local Java processes, without Docker."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from harness.controls import (
    ConnectionStalls,
    DiskContents,
    DiskSpace,
    Elections,
    Links,
    LogDirectories,
    Power,
    Processes,
    WallClocks,
    WireTaps,
)
from harness.errors import EnvironmentFault
from harness.model import Link, NodeId, node_id
from harness.observations import OBSERVATIONS
from harness.target import Receipt, Target
from harness.targets.kafka import shim
from harness.targets.kafka.clocks import KafkaClocks
from harness.targets.kafka.disks import NEEDS_SHIM
from harness.targets.kafka.local import LocalKafka
from harness.targets.kafka.metadata_log import DIRECTORY
from harness.targets.kafka.nodes import KafkaNode
from harness.targets.kafka.observation import ClusterObservation
from harness.targets.kafka.observed_cluster import ObservedProcesses
from harness.targets.kafka.releases import Metadata
from harness.targets.kafka.server_properties import KafkaSettings, metadata_dir
from harness.targets.kafka.timeline_sampler import TimelineSampler
from harness.targets.node_logs import copy_logs
from harness.targets.node_process import Spawned

_CONTROLS: frozenset[type[Target]] = OBSERVATIONS.union(
    {
        ConnectionStalls,
        DiskContents,
        DiskSpace,
        Elections,
        Links,
        LogDirectories,
        Power,
        Processes,
        WallClocks,
        WireTaps,
    }
)


def controls() -> frozenset[type[Target]]:
    """What can be done to real Kafka on this machine."""
    return _CONTROLS if shim.is_available() else _CONTROLS - NEEDS_SHIM


class ProcessTarget(KafkaClocks):
    """Implements :class:`harness.target.Target`.

    Args:
        directory: where the nodes keep their files; created when missing.
        brokers: how many brokers, with the ids 0, 1, 2 ...
        kafka: the release that they run, and which nodes are controllers.
        settings: of every broker.
        spawned: called with the name and process id of each process right after its start.
    """

    name = "process"

    def __init__(
        self,
        directory: Path,
        brokers: int,
        kafka: LocalKafka,
        settings: KafkaSettings,
        spawned: Spawned = lambda name, pid: None,
    ) -> None:
        super().__init__(directory, brokers, kafka, settings, spawned)
        self.controls = controls()
        self._release = kafka.release

    # ------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """See :class:`harness.target.Target`."""
        super().start()
        self.sampler.start()

    def stop(self) -> None:
        """See :class:`harness.target.Target`. The sampler observes the nodes a last time."""
        for node in self._nodes.values():
            with suppress(EnvironmentFault):  # it may end just now
                node.resume()
        if self._layout is not None:
            self.sampler.stop()
            self.observation.close()
        super().stop()

    def _spawn(self, process: KafkaNode) -> None:
        begun_ns = time.monotonic_ns()
        super()._spawn(process)
        self.sampler.started(process.name, process.incarnation, begun_ns)

    # ------------------------------------------------------------------------------------------------ observation

    @cached_property
    def observation(self) -> ClusterObservation:
        """Observes the running cluster."""
        logs = {name: self._node(name).log for name in self.brokers()}
        disks = {name: metadata_dir(name, self._node(name).data_dir) for name in self._controllers}
        return ClusterObservation(ObservedProcesses(self.layout, self._release, disks, logs))

    @cached_property
    def sampler(self) -> TimelineSampler:
        """Samples the timeline of the running cluster."""
        disks = {name: self._disk(name) for name in self.brokers()}
        return TimelineSampler(
            self.observation,
            self._directory / "watch",
            disks,
            clock_offset_ms=lambda node: self._shims[node].clock_offset_ms,
            is_up=self._goes_on,
        )

    def _disk(self, broker: str) -> Path:
        return self._node(broker).data_dir

    def _metadata_logs(self) -> Mapping[NodeId, Path]:
        if self._release.metadata is not Metadata.KRAFT:
            return {}
        return {node_id(name): metadata_dir(name, one.data_dir) / DIRECTORY for name, one in self._nodes.items()}

    # ------------------------------------------------------------------------------------------------ links

    def cut(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.Links`."""
        self.proxies.cut(links)

    def mend(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.Links`."""
        self.proxies.mend(links)

    def is_cut(self, link: Link) -> Receipt:
        """See :class:`harness.controls.Links`."""
        return self.proxies.is_cut(link)

    def carries(self, link: Link) -> Receipt:
        """See :class:`harness.controls.Links`."""
        return self.proxies.carries(link)

    def stall(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.ConnectionStalls`."""
        self.proxies.stall(links)

    def resume_links(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.ConnectionStalls`."""
        self.proxies.resume_links(links)

    def is_stalled(self, link: Link) -> Receipt:
        """See :class:`harness.controls.ConnectionStalls`."""
        return self.proxies.is_stalled(link)

    def has_gone_on(self, link: Link) -> Receipt:
        """See :class:`harness.controls.ConnectionStalls`."""
        return self.proxies.has_gone_on(link)

    # ------------------------------------------------------------------------------------------------ evidence

    def copy_logs(self, directory: Path) -> None:
        """See :class:`harness.target.Target`."""
        copy_logs(self._directory, directory)
