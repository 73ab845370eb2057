"""Disk faults on the simulated cluster: full disks, failed log directories, damaged logs and power losses."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.broker.log_directories import log_dir_names
from harness.simulation.stack.cluster import SimulatedCluster
from harness.target import LogDamage, Receipt
from harness.targets import log_dirs
from harness.targets.node_disk import damage as harm_log
from harness.targets.node_disk import in_words, inspect
from harness.targets.simulated_nodes import SimulatedNodes

_PROBE_BYTES = 65_536


class SimulatedDisks(SimulatedNodes):
    """The disk faults of :class:`harness.target.Target`.

    Args:
        cluster: the nodes.
        log_dirs_count: how many log directories each broker has.
    """

    def __init__(self, cluster: SimulatedCluster, log_dirs_count: int) -> None:
        super().__init__(cluster)
        self._log_dirs = log_dir_names(log_dirs_count)
        self._limits: dict[str, dict[str, int | None]] = defaultdict(dict)
        self._new_disks: dict[tuple[str, int], log_dirs.NewDisk] = {}

    # ------------------------------------------------------------------------------------------------ power, wear

    def lose_power(self, node: str) -> None:
        """See :class:`harness.controls.Power`."""
        self._node(node).lose_power()

    def has_lost_power(self, node: str) -> Receipt:
        """See :class:`harness.controls.Power`."""
        simulated, dead = self._node(node), self.is_dead(node)
        if not dead.holds or simulated.dropped is None:
            return Receipt(False, dead.seen)
        left = simulated.disk.unflushed()
        return Receipt(
            not left, f"{dead.seen}; {f'still there: {left[0].path}' if left else in_words(simulated.dropped)}"
        )

    def sync_disk(self, node: str) -> None:
        """See :class:`harness.controls.Power`."""
        self._running(node).disk.sync()

    def wipe_disk(self, node: str) -> None:
        """See :class:`harness.controls.DiskContents`."""
        self._resting(node).disk.wipe()

    def is_disk_empty(self, node: str) -> Receipt:
        """See :class:`harness.controls.DiskContents`."""
        empty = self._node(node).disk.is_empty()
        return Receipt(empty, f"node {node}: its disk is {'empty' if empty else 'not empty'}")

    def damage_log(self, node: str, damage: LogDamage) -> None:
        """See :class:`harness.controls.DiskContents`."""
        disk = self._resting(node).disk
        with TemporaryDirectory() as scratch:
            disk.copy_to(Path(scratch))
            harm_log(Path(scratch), damage)
            for path in disk.paths():
                harmed = Path(scratch, path).read_bytes()
                if harmed != disk.read_bytes(path):
                    disk.write_bytes(path, harmed)

    def is_log_damaged(self, node: str, damage: LogDamage) -> Receipt:
        """See :class:`harness.controls.DiskContents`."""
        with TemporaryDirectory() as scratch:
            self._node(node).disk.copy_to(Path(scratch))
            return inspect(Path(scratch), damage)

    # ------------------------------------------------------------------------------------------------ space

    def limit_disk(self, node: str, free_bytes: int | None, log_dir: int | None = None) -> None:
        """See :class:`harness.controls.DiskSpace`."""
        directory = log_dirs.named(self._log_dirs, log_dir)
        self._node(node).disk.limit(directory, free_bytes)
        self._limits[node][directory] = free_bytes

    def _limit_again(self, node: str) -> None:
        """Reset the disk budgets of a restarted node, as a process that reads its configuration does."""
        for directory, free_bytes in self._limits[node].items():
            self._node(node).disk.limit(directory, free_bytes)

    def is_disk_full(self, node: str, log_dir: int | None = None) -> Receipt:
        """See :class:`harness.controls.DiskSpace`. The write is one of 64 KiB to a scratch file."""
        directories = [""] if log_dir is None else self._log_dirs
        return log_dirs.fullness(node, log_dirs.named(self._log_dirs, log_dir), self._probed(node, directories))

    def takes_writes(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`. The writes are of 64 KiB to scratch files."""
        return log_dirs.writable(node, self._probed(node, self._log_dirs))

    def _probed(self, node: str, directories: Sequence[str]) -> dict[str, int | None]:
        disk = self._running(node).disk
        return {name: disk.probe(_PROBE_BYTES, name)[0] for name in directories}

    def has_refused_write(self, node: str, log_dir: int | None = None) -> Receipt:
        """See :class:`harness.target.Target`. The node's timeline has the refusal."""
        refusals = [json.loads(row["detail"]) for row in self._node(node).timeline_rows("storage_failed")]
        return log_dirs.refused_write(node, refusals, log_dir)

    # ------------------------------------------------------------------------------------------------ log directories

    def fail_log_dir(self, node: str, log_dir: int) -> None:
        """See :class:`harness.controls.LogDirectories`."""
        self._new_disks.pop((node, log_dir), None)
        self._node(node).disk.failed.add(log_dirs.named(self._log_dirs, log_dir))

    def mend_log_dir(self, node: str, log_dir: int, *, empty: bool) -> None:
        """See :class:`harness.controls.LogDirectories`."""
        simulated, directory = self._node(node), log_dirs.named(self._log_dirs, log_dir)
        if directory not in simulated.disk.failed:
            return
        if empty:
            self._resting(node).disk.empty(directory)
        simulated.disk.failed.discard(directory)
        if empty:
            found = simulated.disk.list(directory)
            self._new_disks[node, log_dir] = log_dirs.NewDisk(simulated.incarnation, found)

    def is_log_dir_failed(self, node: str, log_dir: int) -> Receipt:
        """See :class:`harness.controls.LogDirectories`. The probe creates a file in it."""
        refusal, _ = self._node(node).disk.probe(0, log_dirs.named(self._log_dirs, log_dir))
        return log_dirs.failure(node, log_dir, refusal)

    def is_log_dir_new(self, node: str, log_dir: int) -> Receipt:
        """See :class:`harness.controls.LogDirectories`."""
        incarnation = self._node(node).incarnation
        return log_dirs.newness(node, log_dir, self._new_disks.get((node, log_dir)), incarnation)

    def offline_log_dirs(self, node: str) -> Sequence[int]:
        """See :class:`harness.target.Target`."""
        return log_dirs.offline(self._running(node).status())
