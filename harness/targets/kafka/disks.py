"""Disk faults on real Kafka: full disks, failed log directories, damaged logs and power losses.

The shim limits the disk and records what was flushed; directories fail and files are damaged as on built-in brokers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from errno import ENOSPC
from pathlib import Path, PurePosixPath

from harness.broker.ledger import Cut
from harness.controls import DiskSpace, Power, WallClocks
from harness.errors import EnvironmentFault
from harness.model import is_broker
from harness.target import LogDamage, Receipt, Target, TopicSpec
from harness.targets import log_dirs
from harness.targets.kafka import flushed, shim
from harness.targets.kafka.cluster import KafkaCluster
from harness.targets.kafka.flushed import Flushed, LocalDisk
from harness.targets.kafka.layout import Listener
from harness.targets.kafka.local import LocalKafka
from harness.targets.kafka.nodes import KafkaNode
from harness.targets.kafka.offline import offline_log_dirs
from harness.targets.kafka.placing import FIRST_TOLD, Placing, tell
from harness.targets.kafka.server_properties import KafkaSettings, metadata_dir
from harness.targets.kafka.shim import Refusal, Shim
from harness.targets.node_disk import damage as harm_log
from harness.targets.node_disk import in_words, inspect, is_empty, wipe
from harness.targets.node_process import Spawned

NEEDS_SHIM: frozenset[type[Target]] = frozenset({DiskSpace, Power, WallClocks})
"""The controls that need the shim."""

_FIRST_WITH_OFFLINE_DIRS = (1, 0)
_PROBE_BYTES = 65_536


class KafkaDisks(KafkaCluster):
    """Implements the disk protocols of :mod:`harness.controls`. Its arguments are those of :class:`KafkaCluster`."""

    def __init__(
        self, directory: Path, brokers: int, kafka: LocalKafka, settings: KafkaSettings, spawned: Spawned
    ) -> None:
        super().__init__(directory, brokers, kafka, settings, spawned)
        self._has_offline_dirs = kafka.release.numbers >= _FIRST_WITH_OFFLINE_DIRS
        self._shims = {node: self._new_shim(node, one) for node, one in self._nodes.items()}
        self._places_replicas = len(settings.log_dirs) > 1 and kafka.release.numbers >= FIRST_TOLD
        self._placing = Placing({node: self._paths(node) for node in self.brokers()})
        self._new_disks: dict[tuple[str, int], log_dirs.NewDisk] = {}
        self._dropped: dict[str, tuple[int, list[Cut]]] = {}

    def _new_shim(self, node: str, process: KafkaNode) -> Shim:
        """On a combined node the metadata log, beside the disk, has to survive a power loss, too."""
        is_combined = node in self._controllers and is_broker(node)
        beside = metadata_dir(node, process.data_dir) if is_combined else None
        return Shim(process.directory, self._log_dirs(node), beside)

    def _environment(self, node: str) -> Mapping[str, str]:
        """With the shim, where it can be built; elsewhere the plan refuses what needs it."""
        environment = super()._environment(node)
        return {**environment, **self._shims[node].environment()} if shim.is_available() else environment

    def _shim(self, node: str) -> Shim:
        """The shim of a node whose processes have it.

        Raises:
            EnvironmentFault: they have not.
        """
        process = self._node(node)
        shim.library()
        one = self._shims[node]
        strangers = [pid for pid in process.pids if not one.is_loaded_by(pid)]
        if strangers:
            raise EnvironmentFault(
                f"process {strangers[0]} of node {node} was started without the disk and clock shim."
            )
        return one

    # ------------------------------------------------------------------------------------------------ power, wear

    def lose_power(self, node: str) -> None:
        """See :class:`harness.controls.Power`."""
        process, one = self._node(node), self._shim(node)
        process.kill()
        cuts = [cut for disk in _disks(one) for cut in Flushed(disk, one.ledger).lose()]
        self._dropped[node] = (process.incarnation, cuts)

    def has_lost_power(self, node: str) -> Receipt:
        """See :class:`harness.controls.Power`."""
        process, one, dead = self._node(node), self._shims[node], self.is_dead(node)
        incarnation, cuts = self._dropped.get(node, (None, []))
        if not dead.holds or incarnation != process.incarnation:
            return Receipt(False, dead.seen)
        left = next((cut for disk in _disks(one) for cut in Flushed(disk, one.ledger).losses()), None)
        return Receipt(left is None, f"{dead.seen}; {f'still there: {left.path}' if left else in_words(cuts)}")

    def sync_disk(self, node: str) -> None:
        """See :class:`harness.controls.Power`."""
        one = self._running(node)
        for disk in _disks(one):
            flushed.sync(disk, one.ledger)

    def wipe_disk(self, node: str) -> None:
        """See :class:`harness.controls.DiskContents`."""
        wipe(self._resting(node).data_dir)
        LocalDisk(self._node(node).data_dir, self._shims[node].ledger).forget_older()

    def is_disk_empty(self, node: str) -> Receipt:
        """See :class:`harness.controls.DiskContents`."""
        empty = is_empty(self._node(node).data_dir)
        return Receipt(empty, f"node {node}: its disk is {'empty' if empty else 'not empty'}")

    def damage_log(self, node: str, damage: LogDamage) -> None:
        """See :class:`harness.controls.DiskContents`."""
        harm_log(self._resting(node).data_dir, damage)

    def is_log_damaged(self, node: str, damage: LogDamage) -> Receipt:
        """See :class:`harness.controls.DiskContents`."""
        return inspect(self._node(node).data_dir, damage)

    # ------------------------------------------------------------------------------------------------ space

    def limit_disk(self, node: str, free_bytes: int | None, log_dir: int | None = None) -> None:
        """See :class:`harness.controls.DiskSpace`. Stores to mapped pages of an index are not counted."""
        self._shim(node).limit(log_dirs.named(self._log_dirs(node), log_dir), free_bytes)

    def is_disk_full(self, node: str, log_dir: int | None = None) -> Receipt:
        """See :class:`harness.target.Target`. The probe is a process with the node's shim that writes 64 KiB."""
        names = self._log_dirs(node)
        probes = self._probed(node, [""] if log_dir is None else names)
        return log_dirs.fullness(node, log_dirs.named(names, log_dir), probes)

    def takes_writes(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`. Tried as for :meth:`is_disk_full`."""
        return log_dirs.writable(node, self._probed(node, self._log_dirs(node)))

    def has_refused_write(self, node: str, log_dir: int | None = None) -> Receipt:
        """See :class:`harness.target.Target`. The shim in the node's process has recorded the refusal."""
        refusals = sorted(self._refusals(node, log_dir), key=lambda refusal: not _is_append(refusal))
        if not refusals:
            return Receipt(False, f"node {node}: no write of its own was refused")
        first, path = refusals[0], PurePosixPath(refusals[0].path)
        what = f"append {path.parent.name}" if _is_append(first) else f"write {path.name}"
        written = f"{first.size} bytes to {first.path} by process {first.pid}"
        return Receipt(True, f"node {node}: a write of its own ({what}) was refused with errno {ENOSPC}: {written}")

    def _refusals(self, node: str, log_dir: int | None) -> Iterator[Refusal]:
        """Since the node was last started."""
        pids = {jvm.pid for jvm in self._node(node).processes}
        is_whole_disk = log_dir is None or log_dirs.named(self._log_dirs(node), log_dir) == ""
        for refusal in self._shims[node].refusals():
            if refusal.pid in pids and (is_whole_disk or refusal.log_dir == log_dir):
                yield refusal

    def _probed(self, node: str, directories: Sequence[str]) -> dict[str, int | None]:
        one = self._running(node)
        return {name: one.probe(name, _PROBE_BYTES) for name in directories}

    def _running(self, node: str) -> Shim:
        process = self._node(node)
        if not process.is_whole:
            raise EnvironmentFault(f"node {node} is not running: {process.in_words()}.")
        return self._shim(node)

    # ------------------------------------------------------------------------------------------------ log directories

    def create_topic(self, topic: TopicSpec) -> None:
        """See :class:`harness.target.Target`. Replicas are placed by the rule of the built-in brokers."""
        places = self._placing.places(topic) if self._places_replicas else {}
        for node, wanted in places.items():
            tell(node, self.layout.real(node, Listener.HARNESS), wanted)
        super().create_topic(topic)
        for node, wanted in places.items():
            for path, names in wanted.items():
                if missing := [name for name in names if not (path / str(name)).is_dir()]:
                    raise EnvironmentFault(f"node {node} has not put {missing[0]} into {path.name}, as requested.")

    def fail_log_dir(self, node: str, log_dir: int) -> None:
        """See :class:`harness.controls.LogDirectories`. A file takes the place of the directory, kept aside."""
        self._new_disks.pop((node, log_dir), None)
        log_dirs.fail(self._log_dir(node, log_dir))

    def mend_log_dir(self, node: str, log_dir: int, *, empty: bool) -> None:
        """See :class:`harness.controls.LogDirectories`."""
        directory = self._log_dir(node, log_dir)
        if not empty:
            log_dirs.mend(directory)
        elif not directory.is_dir():
            process, one = self._resting(node), self._shims[node]
            log_dirs.mend(directory, empty=True)
            if one.ledger.exists():
                flushed.forget_removed(process.directory, one.ledger)
            found = [path.name for path in directory.iterdir()]
            self._new_disks[node, log_dir] = log_dirs.NewDisk(process.incarnation, found)

    def is_log_dir_failed(self, node: str, log_dir: int) -> Receipt:
        """See :class:`harness.controls.LogDirectories`. The probe creates a file in it."""
        return log_dirs.failure(node, log_dir, log_dirs.refusal_of(self._log_dir(node, log_dir)))

    def is_log_dir_new(self, node: str, log_dir: int) -> Receipt:
        """See :class:`harness.controls.LogDirectories`."""
        incarnation = self._node(node).incarnation
        return log_dirs.newness(node, log_dir, self._new_disks.get((node, log_dir)), incarnation)

    def offline_log_dirs(self, node: str) -> Sequence[int]:
        """See :class:`harness.target.Target`. A broker before 1.0, and a controller, halts rather than give one up."""
        if not self._answers(node):
            raise EnvironmentFault(f"node {node} does not answer: {self._node(node).in_words()}.")
        if not is_broker(node) or not self._has_offline_dirs:
            return []
        offline = offline_log_dirs(node, self.layout.real(node, Listener.HARNESS))
        return [number for number, path in enumerate(self._paths(node)) if path in offline]

    def _log_dirs(self, node: str) -> Sequence[str]:
        return self._settings.log_dirs if is_broker(node) else [""]

    def _paths(self, node: str) -> Sequence[Path]:
        return [self._log_dir(node, number) for number in range(len(self._log_dirs(node)))]

    def _log_dir(self, node: str, log_dir: int) -> Path:
        return self._node(node).data_dir / log_dirs.named(self._log_dirs(node), log_dir)


def _disks(one: Shim) -> Sequence[LocalDisk]:
    return [LocalDisk(disk, one.ledger) for disk in one.disks]


def _is_append(refusal: Refusal) -> bool:
    return refusal.path.endswith(".log")
