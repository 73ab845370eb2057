"""Disk faults on the built-in cluster: full disks, failed log directories, damaged logs and power losses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.broker.ledger import Cut
from harness.broker.log_directories import log_dir_names
from harness.broker.secret import Secret
from harness.target import LogDamage, Receipt
from harness.targets import log_dirs
from harness.targets.builtin_nodes import BuiltinNodes
from harness.targets.node_disk import damage as harm_log
from harness.targets.node_disk import drop_page_cache, in_words, inspect, is_empty, unflushed, wipe
from harness.targets.node_evidence import storage_refusals
from harness.targets.node_process import NodeProcess


class BuiltinDisks(BuiltinNodes):
    """Implements the disk protocols of :mod:`harness.controls`.

    Args:
        nodes: the controller first.
        secret: of the run.
        log_dirs_count: how many log directories each broker has.
    """

    def __init__(self, nodes: Iterable[NodeProcess], secret: Secret, log_dirs_count: int) -> None:
        super().__init__(nodes, secret)
        self._log_dirs = log_dir_names(log_dirs_count)
        self._limits: dict[str, dict[str, int]] = defaultdict(dict)
        self._new_disks: dict[tuple[str, int], log_dirs.NewDisk] = {}
        self._dropped: dict[str, tuple[int, list[Cut]]] = {}

    # ------------------------------------------------------------------------------------------------ power, wear

    def lose_power(self, node: str) -> None:
        """See :class:`harness.controls.Power`."""
        process = self._node(node)
        process.kill()
        self._dropped[node] = (process.incarnation, drop_page_cache(process.data_dir))

    def has_lost_power(self, node: str) -> Receipt:
        """See :class:`harness.controls.Power`."""
        process = self._node(node)
        dead = self.is_dead(node)
        incarnation, cuts = self._dropped.get(node, (None, []))
        if not dead.holds or incarnation != process.incarnation:
            return Receipt(False, dead.seen)
        left = unflushed(process.data_dir)
        return Receipt(not left, f"{dead.seen}; {f'still there: {left[0].path}' if left else in_words(cuts)}")

    def sync_disk(self, node: str) -> None:
        """See :class:`harness.controls.Power`."""
        self._ask(node, op="sync")

    def wipe_disk(self, node: str) -> None:
        """See :class:`harness.controls.DiskContents`."""
        wipe(self._resting(node).data_dir)

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
        """See :class:`harness.controls.DiskSpace`."""
        self._node(node)
        directory = log_dirs.named(self._log_dirs, log_dir)
        self._limits[node].pop(directory, None)
        if free_bytes is not None:
            self._limits[node][directory] = free_bytes
        if self._can_obey(node):
            self._ask(node, op="limit_disk", free_bytes=free_bytes, directory=directory)

    def is_disk_full(self, node: str, log_dir: int | None = None) -> Receipt:
        """See :class:`harness.controls.DiskSpace`. The write is one of 64 KiB to a scratch file."""
        directories = [""] if log_dir is None else self._log_dirs
        return log_dirs.fullness(node, log_dirs.named(self._log_dirs, log_dir), self._probed(node, directories))

    def takes_writes(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`. The writes are of 64 KiB to scratch files."""
        return log_dirs.writable(node, self._probed(node, self._log_dirs))

    def has_refused_write(self, node: str, log_dir: int | None = None) -> Receipt:
        """See :class:`harness.target.Target`. The node's timeline has the refusal."""
        process = self._node(node)
        return log_dirs.refused_write(node, storage_refusals(process.timeline, process.incarnation), log_dir)

    # ------------------------------------------------------------------------------------------------ log directories

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
            incarnation = self._resting(node).incarnation
            log_dirs.mend(directory, empty=True)
            found = [path.name for path in directory.iterdir()]
            self._new_disks[node, log_dir] = log_dirs.NewDisk(incarnation, found)

    def is_log_dir_failed(self, node: str, log_dir: int) -> Receipt:
        """See :class:`harness.controls.LogDirectories`. The probe creates a file in it."""
        refusal = log_dirs.refusal_of(self._log_dir(node, log_dir))
        return log_dirs.failure(node, log_dir, refusal)

    def is_log_dir_new(self, node: str, log_dir: int) -> Receipt:
        """See :class:`harness.controls.LogDirectories`."""
        incarnation = self._node(node).incarnation
        return log_dirs.newness(node, log_dir, self._new_disks.get((node, log_dir)), incarnation)

    def offline_log_dirs(self, node: str) -> Sequence[int]:
        """See :class:`harness.target.Target`."""
        return log_dirs.offline(self._look(node))

    def _log_dir(self, node: str, log_dir: int) -> Path:
        return self._node(node).data_dir / log_dirs.named(self._log_dirs, log_dir)

    def _probed(self, node: str, directories: Sequence[str]) -> dict[str, int | None]:
        return {name: self._ask(node, op="probe_disk", directory=name)["errno"] for name in directories}

    def _within(self, node: str) -> dict[str, int]:
        """The limits of single log directories."""
        return {directory: free_bytes for directory, free_bytes in self._limits[node].items() if directory}
