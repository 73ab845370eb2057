"""Reads the compose file of ``--target compose:FILE``, and inspects its images for their Kafka release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
from harness.errors import UsageError
from harness.model import CONTROLLER
from harness.observations import OBSERVATIONS
from harness.target import Target
from harness.targets.compose.compose_file import ComposeFile, understood
from harness.targets.compose.image import look_into
from harness.targets.compose.images import provide_all
from harness.targets.compose.overlay import needed
from harness.targets.compose.project import connected
from harness.targets.compose.refusals import refuse, refuse_metadata
from harness.targets.compose.rewriting import Stack, kept
from harness.targets.compose.written_stack import WrittenStack
from harness.targets.kafka import shim
from harness.targets.kafka.releases import Release

_ALWAYS = OBSERVATIONS | {Processes, Links, DiskSpace, DiskContents, Elections, WireTaps}


@dataclass(frozen=True, slots=True)
class InspectedStack:
    """A compose file whose images have been inspected.

    Attributes:
        file: its Kafka services.
        stack: the file as plain data; see :mod:`harness.targets.compose.rewriting`.
        services: the services to run: those with Kafka or ZooKeeper, and their dependencies.
        release: of Kafka, the same in every image.
        takes_shim: whether the disk and clock shim can be loaded into every broker.
        platforms: Confluent's versions of the images, from which a table gives the release; its last number may be
            wrong.
    """

    file: ComposeFile
    stack: Stack
    services: Sequence[str]
    release: Release
    takes_shim: bool
    platforms: Sequence[str] = ()

    @property
    def controls(self) -> frozenset[type[Target]]:
        """What can be done to its containers on this machine."""
        by_shim: set[type[Target]] = {WallClocks} if self._is_combined else {WallClocks, Power}
        return _ALWAYS | by_shim if self.takes_shim else _ALWAYS

    @property
    def lacks(self) -> Mapping[type[Target], str]:
        """Why each missing control is missing, in a sentence."""
        no_shim = f"The disk and clock shim, built here, has no effect in image {self.file.brokers[0].image}."
        if not shim.is_available():
            no_shim = "The disk and clock shim needs a C compiler: see `seawall doctor`."
        combined = (
            "Of brokers that are the controllers it is not known how much of the metadata log had reached the disk; "
            "use a file with controllers of their own, or --target process:RELEASE#combined."
        )
        return {
            WallClocks: no_shim,
            Power: combined if self._is_combined and self.takes_shim else no_shim,
            ConnectionStalls: "Toxiproxy cuts a link in all its connections; use --target process:.",
            LogDirectories: "A container's volume cannot lose its name; use --target process:.",
        }

    @property
    def _is_combined(self) -> bool:
        return any(broker.is_controller for broker in self.file.brokers)

    def in_words(self) -> Mapping[str, Any]:
        """The service of each node, as plain data for ``run.json``."""
        brokers = {
            node: {"service": broker.name, "id": broker.kafka_id, "image": broker.image}
            for node, broker in zip(self.file.nodes, self.file.brokers, strict=False)
        }
        controllers = list(self.file.nodes.get(CONTROLLER, ()))
        by_table = {"release_by_table_of": [f"Confluent Platform {one}" for one in self.platforms]}
        said = by_table if self.platforms else {}
        return {"file": str(self.file.path), "brokers": brokers, CONTROLLER: controllers, **said}


def find(written: WrittenStack) -> InspectedStack:
    """The Kafka that a compose file runs; inspects its images, and pulls or builds missing ones.

    Raises:
        NoKafka: none of its images has Kafka in it.
        UsageError: the file is not understood; its images differ or have no known Kafka; or the file uses ZooKeeper and
            that Kafka KRaft, or the reverse.
        EnvironmentFault: there is no Docker engine or no Compose, or an image is unavailable.
    """
    stack, path, pattern = written.stack, written.path, written.pattern
    file = understood(stack, path, pattern)
    refuse(file)
    services = kept(stack, needed(file))
    client = connected()
    try:
        provide_all(client, path, stack, services)
        images = {image: look_into(client, image) for image in sorted({one.image for one in file.kafkas})}
    finally:
        client.close()
    releases = {found.release.version: found.release for found in images.values()}
    if len(releases) > 1:
        raise UsageError(
            f"{path}: brokers of different releases, {' and '.join(sorted(releases))}.",
            "Let all of them run the same: promises and predictions are those of one release.",
        )
    (kafka,) = releases.values()
    refuse_metadata(file, kafka)
    platforms = sorted({found.platform for found in images.values() if found.platform})
    takes_shim = all(found.takes_shim for found in images.values())
    return InspectedStack(file, stack, services, kafka, takes_shim, platforms)
