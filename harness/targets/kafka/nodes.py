"""The nodes of a real Kafka cluster: one process each, or two for a controller with ZooKeeper."""

from __future__ import annotations

import base64
import shutil
import signal
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.errors import EnvironmentFault
from harness.model import CONTROLLER_ID, NodeId, is_broker, node_id
from harness.target import Ending
from harness.targets.endings import OUT_OF_MEMORY, judged
from harness.targets.kafka.fetching import Distribution
from harness.targets.kafka.jvm import TERMINATED, Jvm, Program
from harness.targets.kafka.layout import Layout
from harness.targets.kafka.server_properties import (
    KafkaSettings,
    metadata_dir,
    server_properties,
    to_be_formatted,
    zookeeper_properties,
)
from harness.targets.kafka.shim import refuse_failure
from harness.targets.kafka.zookeeper import forget_registration
from harness.targets.node_logs import SECOND, logs_of
from harness.targets.node_process import Spawned

_BROKER_MIB = 224
_CONTROLLER_MIB = 160
_ZOOKEEPER_MIB = 96
_FORMAT_TIMEOUT_S = 60.0
_META = "meta.properties"
_FEATURES = ("bootstrap.checkpoint", f"__cluster_metadata-0/{0:020}-{0:010}.checkpoint")
"""Where Kafka's tool writes the features of a new cluster: before 4.4.0, and since then."""


def new_cluster_id() -> str:
    """A random one, as Kafka writes them: none begins like an option."""
    while True:
        drawn = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not drawn.startswith("-"):
            return drawn


class KafkaNode:
    """A broker or a controller, with its disk in ``data_dir``.

    Args:
        name: as the end of a link.
        directory: of its files.
        distribution: what it runs.
        spawned: called with the process ids.

    Attributes:
        incarnation: how often it had been started before it was last; -1 before the first.
    """

    def __init__(self, name: str, directory: Path, distribution: Distribution, spawned: Spawned) -> None:
        self.name = name
        self.directory = directory.resolve()
        self.incarnation = -1
        self._jvm = Jvm(name, self.directory, spawned, distribution)
        self._endings: list[Ending] = []
        self._heap_mib = _BROKER_MIB if is_broker(name) else _CONTROLLER_MIB

    # ------------------------------------------------------------------------------------------------ life

    def configure(self, layout: Layout, settings: KafkaSettings, cluster_id: str) -> None:
        """Write what its processes read; ``cluster_id`` is for KRaft."""
        self._jvm.hosts.write_text(layout.hosts_file(self.name))
        self._properties.write_text(server_properties(layout, settings, self.name, self.data_dir))

    def spawn(self, environment: Mapping[str, str]) -> None:
        """Start its processes, with ``environment`` on top of this process's own."""
        self._endings = self.endings()
        self.incarnation += 1
        self._start(environment)

    def _start(self, environment: Mapping[str, str]) -> None:
        self._jvm.run(Program("kafka.Kafka", (str(self._properties),), self._heap_mib), environment)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every process of it that exists.

        Raises:
            EnvironmentFault: none does.
        """
        if not self.exists:
            raise EnvironmentFault(f"node {self.name} cannot be sent {number.name}: its process is gone.")
        for jvm in self._existing():
            jvm.signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait until its processes are gone; harmless when they already are."""
        for jvm in self.processes:
            jvm.strike()
        for jvm in self.processes:
            jvm.kill()

    def pause(self) -> None:
        """SIGSTOP, and wait until its processes are stopped."""
        for jvm in self._existing():
            jvm.pause()

    def resume(self) -> None:
        """SIGCONT, and wait until its processes are not stopped any more."""
        for jvm in self._existing():
            jvm.resume()

    def shut_down(self, timeout_s: float) -> bool:
        """SIGTERM; returns whether its processes ended within ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        for jvm in reversed(self._existing()):
            jvm.signal(signal.SIGTERM)
            if not jvm.wait(deadline - time.monotonic()):
                return False
        return True

    def forget(self) -> None:
        """Remove the native libraries that its processes have unpacked."""
        for jvm in self.processes:
            jvm.forget()

    # ------------------------------------------------------------------------------------------------ observation

    @property
    def data_dir(self) -> Path:
        """Its disk."""
        return self._jvm.data_dir

    @property
    def log(self) -> Path:
        """The output of its first process."""
        return self._jvm.log

    @property
    def logs(self) -> Mapping[str, Path]:
        """The output of its processes, by the file name of a copy."""
        return logs_of(self.directory)

    @property
    def processes(self) -> Sequence[Jvm]:
        """Its processes, in the order in which they are started."""
        return (self._jvm,)

    @property
    def pids(self) -> Sequence[int]:
        """The ids of its processes that exist."""
        return [jvm.pid for jvm in self._existing() if jvm.pid is not None]

    @property
    def exists(self) -> bool:
        """Whether one of its processes exists, stopped by a signal or not."""
        return bool(self._existing())

    @property
    def is_whole(self) -> bool:
        """Whether all of its processes exist."""
        return len(self._existing()) == len(self.processes)

    @property
    def is_stopped(self) -> bool:
        """Whether all of its processes are stopped by a signal."""
        return all(jvm.is_stopped for jvm in self.processes)

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL has ended each of its processes; raises as :attr:`has_exited`, but not for its shim."""
        self._refuse_fall()
        return all(jvm.exit_status == -signal.SIGKILL for jvm in self.processes)

    @property
    def was_shut_down(self) -> bool:
        """Whether each of its processes has ended because it was asked to."""
        return all(jvm.exit_status in (0, TERMINATED) for jvm in self.processes)

    @property
    def has_exited(self) -> bool:
        """Whether one of its processes has ended itself without being asked to.

        Raises:
            EnvironmentFault: its small heap was full, the shim failed, or a signal from outside the harness ended it,
                none of which is a fault of Kafka.
        """
        self._refuse_fall()
        statuses = [jvm.exit_status for jvm in self.processes]
        refuse_failure(self.name, statuses)
        if OUT_OF_MEMORY in statuses:
            raise EnvironmentFault(
                f"node {self.name} has run out of memory, which no release of Kafka is to blame for."
            )
        return any(status is not None and status > 0 and status != TERMINATED for status in statuses)

    def endings(self) -> list[Ending]:
        """How each of its lives ended that the harness did not end."""
        ends = [(jvm, jvm.unordered()) for jvm in self.processes]
        ended = [(*end, jvm.log_tail()) for jvm, end in ends if end is not None]
        return [*self._endings, *(judged(Ending(node_id(self.name), self.incarnation, *one)) for one in ended)]

    def _refuse_fall(self) -> None:
        """A SIGKILL from outside the harness is the kernel's, which lacks memory; other signals are crashes of Java."""
        for jvm in self.processes:
            if jvm.fell_to is not None:
                raise EnvironmentFault(
                    f"node {self.name} was ended by {jvm.fell_to.name}, which seawall has not sent.",
                    f"Look in {jvm.log}, and for SIGKILL in the kernel's log: this machine may be out of memory.",
                )

    def in_words(self) -> str:
        """Its processes and their states."""
        return ", ".join(map(_in_words, self.processes))

    def log_tail(self) -> str:
        """The last lines of its log in one line."""
        return self._jvm.log_tail()

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"

    def _existing(self) -> list[Jvm]:
        return [jvm for jvm in self.processes if jvm.exists]


class KraftNode(KafkaNode):
    """A node of a cluster without ZooKeeper: its directories must be formatted, new ones before the next start.

    Args:
        name: see :class:`KafkaNode`.
        directory: see :class:`KafkaNode`. The controllers' are side by side.
        distribution: see :class:`KafkaNode`.
        spawned: see :class:`KafkaNode`.
        controls: whether it is a controller, combined or not.
    """

    def __init__(
        self, name: str, directory: Path, distribution: Distribution, spawned: Spawned, *, controls: bool
    ) -> None:
        super().__init__(name, directory, distribution, spawned)
        self._controls = controls
        if controls and is_broker(name):
            self._heap_mib = _BROKER_MIB + _CONTROLLER_MIB

    @property
    def metadata_dir(self) -> Path:
        """Where its copy of the metadata log is."""
        return metadata_dir(self.name, self.data_dir)

    def configure(self, layout: Layout, settings: KafkaSettings, cluster_id: str) -> None:
        """See :class:`KafkaNode`."""
        super().configure(layout, settings, cluster_id)
        self._cluster_id = cluster_id
        self._formatted = to_be_formatted(settings, self.name, self.data_dir)

    def _start(self, environment: Mapping[str, str]) -> None:
        if self._controls and not (self.metadata_dir / _META).exists():
            self._give_features()
        for directory in self._formatted:
            _format(directory, self._cluster_id, node_id(self.name))
        super()._start(environment)

    def _give_features(self) -> None:
        """Write the features of a new cluster of this release, the same for every controller."""
        features = self.directory.with_name("features")
        if not features.exists():
            self._format_by_kafka()
            [written] = [name for name in _FEATURES if (self.metadata_dir / name).exists()]
            (features / written).parent.mkdir(parents=True)
            shutil.copyfile(self.metadata_dir / written, features / written)
        shutil.copytree(features, self.metadata_dir, dirs_exist_ok=True)

    def _format_by_kafka(self) -> None:
        """Kafka's own tool knows them."""
        arguments = ("format", "--cluster-id", self._cluster_id, "--config", str(self._properties))
        self._jvm.run(Program("kafka.tools.StorageTool", arguments, _CONTROLLER_MIB), {})
        self._jvm.let_end()
        if not self._jvm.wait(_FORMAT_TIMEOUT_S):
            self._jvm.kill()
            raise EnvironmentFault(
                f"the disk of node {self.name} was not formatted within {_FORMAT_TIMEOUT_S:g} s: Java was too slow.",
                "Give this machine less to do beside.",
            )
        if self._jvm.exit_status != 0:
            raise EnvironmentFault(f"the disk of node {self.name} was not formatted: {self._jvm.last_words()}")


class ZooKeeperController(KafkaNode):
    """ZooKeeper, whose disk is the node's, and a broker that holds no replicas and is Kafka's controller."""

    def __init__(self, name: str, directory: Path, distribution: Distribution, spawned: Spawned) -> None:
        super().__init__(name, directory, distribution, spawned)
        self._broker = Jvm(f"{name}'s broker", self.directory / SECOND, spawned, distribution)

    def configure(self, layout: Layout, settings: KafkaSettings, cluster_id: str) -> None:
        """See :class:`KafkaNode`."""
        del cluster_id
        self._layout = layout
        for jvm in self.processes:
            jvm.hosts.write_text(layout.hosts_file(self.name))
        self._zookeeper.write_text(zookeeper_properties(layout, self.data_dir))
        self._properties.write_text(server_properties(layout, settings, self.name, self._broker.data_dir))

    def _start(self, environment: Mapping[str, str]) -> None:
        main, arguments = "org.apache.zookeeper.server.ZooKeeperServerMain", (str(self._zookeeper),)
        self._jvm.run(Program(main, arguments, _ZOOKEEPER_MIB), environment)
        if self.incarnation > 0:
            forget_registration(self._layout.zookeeper, CONTROLLER_ID)
        self._broker.run(Program("kafka.Kafka", (str(self._properties),), _CONTROLLER_MIB), environment)

    @property
    def processes(self) -> Sequence[Jvm]:
        """See :class:`KafkaNode`."""
        return (self._jvm, self._broker)

    @property
    def _zookeeper(self) -> Path:
        return self.directory / "zookeeper.properties"


def _format(directory: Path, cluster_id: str, node: NodeId) -> None:
    """Make ``directory`` one of ``node``, as ``kafka-storage format`` does, unless it is one or is no directory."""
    if directory.exists() and not directory.is_dir():
        return
    directory.mkdir(parents=True, exist_ok=True)
    if not (directory / _META).exists():
        (directory / _META).write_text(f"version=1\ncluster.id={cluster_id}\nnode.id={node}\n")


def _in_words(jvm: Jvm) -> str:
    if jvm.exists:
        return f"process {jvm.pid} exists, in state {jvm.state()}"
    if jvm.exit_status == TERMINATED:
        return f"process {jvm.pid} is gone, having shut down as it was asked to"
    return f"process {jvm.pid} is gone, {jvm.last_words()}"
