"""A target in memory that records every call, and returns the observations that a test sets.

For testing a fault without a cluster: inject it, look at :attr:`ScriptedTarget.calls`, probe it. Faults that
silently do nothing are scripted with :attr:`ScriptedTarget.ignored`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.controls import CONTROLS
from harness.errors import EnvironmentFault
from harness.history.blocks import Block
from harness.model import CONTROLLER, Link, NodeId, Offset, TopicPartition
from harness.observations import OBSERVATIONS
from harness.target import (
    ClusterView,
    Ending,
    LogDamage,
    PartitionView,
    Receipt,
    ReplicaView,
    TopicSpec,
)


def cluster_view(brokers: int, partitions: Mapping[TopicPartition, PartitionView] | None = None) -> ClusterView:
    """A view of ``brokers`` live brokers."""
    return ClusterView(0, tuple(map(NodeId, range(brokers))), dict(partitions or {}))


def partition_view(leader: int, isr: Sequence[int], leader_epoch: int = 0) -> PartitionView:
    """A partition whose replicas are all in sync."""
    members = tuple(map(NodeId, isr))
    return PartitionView(NodeId(leader), leader_epoch, members, members)


@dataclass
class ScriptedTarget:
    """Implements :class:`harness.target.Target`.

    Attributes:
        brokers: how many.
        shown: what :meth:`view` returns.
        replicas: what :meth:`replica` returns, by broker and partition.
        ignored: names of methods that silently do nothing.
        refused: names of methods that raise ``EnvironmentFault``.
        broken: brokers whose disk refuses writes for another reason than that it is full.
        written_to: brokers whose full disk refuses a write of their own at once.
        ended: what :meth:`endings` returns.
        exited: nodes that have exited by themselves.
        silent: brokers that run and do not answer any more.
        lossy: links that lose all bytes without being cut.
        offline: the brokers' offline log directories, until they start again.
        commits: what :meth:`committed` returns, by group.
        remaining: what is left of it after its end.
        calls: every call that changes something, as ``(name, argument ...)``.
    """

    brokers: int = 3
    shown: ClusterView = field(default_factory=lambda: cluster_view(3))
    replicas: dict[tuple[str, TopicPartition], ReplicaView] = field(default_factory=dict)
    ignored: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    written_to: set[str] = field(default_factory=set)
    ended: list[Ending] = field(default_factory=list)
    exited: set[str] = field(default_factory=set)
    silent: set[str] = field(default_factory=set)
    lossy: set[Link] = field(default_factory=set)
    offline: dict[str, set[int]] = field(default_factory=dict)
    commits: dict[str, dict[TopicPartition, Offset]] = field(default_factory=dict)
    remaining: list[str] = field(default_factory=list)
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    name = "scripted"
    controls = CONTROLS | OBSERVATIONS

    def __post_init__(self) -> None:
        self._dead: set[str] = set()
        self._stopped: set[str] = set()
        self._powerless: set[str] = set()
        self._wiped: set[str] = set()
        self._damaged: set[tuple[str, LogDamage]] = set()
        self._paused: set[str] = set()
        self._cut: set[Link] = set()
        self._stalled: set[Link] = set()
        self._full: set[str] = set()
        self._failed: set[tuple[str, int]] = set()
        self._new: dict[tuple[str, int], bool] = {}
        self._offsets_ms: dict[str, int] = {}

    def start(self) -> None:
        """See :class:`harness.target.Target`."""
        self._obeys("start")

    def stop(self) -> None:
        """See :class:`harness.target.Target`."""
        self._obeys("stop")

    def remains(self) -> Sequence[str]:
        """See :class:`harness.target.Target`."""
        return self.remaining

    def create_topic(self, topic: TopicSpec) -> None:
        """See :class:`harness.target.Target`."""
        self._obeys("create_topic", topic)

    def bootstrap(self) -> str:
        """See :class:`harness.target.Target`."""
        return "127.0.0.1:1"

    def nodes(self) -> Sequence[str]:
        """See :class:`harness.target.Target`."""
        return [*map(str, range(self.brokers)), CONTROLLER]

    def view(self) -> ClusterView:
        """See :class:`harness.target.Target`."""
        return self.shown

    def replica(self, node: str, partition: TopicPartition) -> ReplicaView | None:
        """See :class:`harness.target.Target`."""
        return None if node in self._dead | self._stopped else self.replicas.get((node, partition))

    def kill(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        if self._obeys("kill", node):
            self._dead.add(node)

    def restart(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        if self._obeys("restart", node):
            for down in (self._dead, self._stopped, self._powerless, self._wiped, self.exited):
                down.discard(node)
            self.offline.pop(node, None)

    def start_and_die(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        if self._obeys("start_and_die", node):
            self._stopped.discard(node)
            self.exited.add(node)

    def is_running(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`."""
        runs = node not in self._dead | self._paused | self._stopped | self.exited
        return Receipt(runs, f"node {node} {'answers' if runs else 'does not answer'}")

    def is_dead(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        return Receipt(node in self._dead, f"node {node} is {'dead' if node in self._dead else 'alive'}")

    def pause(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        if self._obeys("pause", node):
            self._paused.add(node)

    def resume(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        if self._obeys("resume", node):
            self._paused.discard(node)

    def is_paused(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        return Receipt(node in self._paused, f"node {node} is {'stopped' if node in self._paused else 'running'}")

    def cut(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.Links`."""
        if self._obeys("cut", *links):
            self._cut |= set(links)

    def mend(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.Links`."""
        if self._obeys("mend", *links):
            self._cut -= set(links)

    def is_cut(self, link: Link) -> Receipt:
        """See :class:`harness.controls.Links`."""
        return Receipt(link in self._cut, f"{link} is {'cut' if link in self._cut else 'whole'}")

    def carries(self, link: Link) -> Receipt:
        """See :class:`harness.target.Target`. A request needs its answer, which a dead node does not give."""
        back = Link(link.destination, link.source)
        lost = bool({link, back} & (self._cut | self.lossy)) or not self.is_running(link.destination).holds
        return Receipt(not lost, f"{link}: a probe got {'lost' if lost else 'through'}")

    def stall(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.ConnectionStalls`."""
        if self._obeys("stall", *links):
            self._stalled |= set(links)

    def resume_links(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.ConnectionStalls`."""
        if self._obeys("resume_links", *links):
            self._stalled -= set(links)

    def is_stalled(self, link: Link) -> Receipt:
        """See :class:`harness.controls.ConnectionStalls`."""
        return Receipt(link in self._stalled, f"{link} is {'stalled' if link in self._stalled else 'not stalled'}")

    def has_gone_on(self, link: Link) -> Receipt:
        """See :class:`harness.controls.ConnectionStalls`."""
        return Receipt(link not in self._stalled, f"{link} is {'stalled' if link in self._stalled else 'not stalled'}")

    def limit_disk(self, node: str, free_bytes: int | None, log_dir: int | None = None) -> None:
        """See :class:`harness.controls.DiskSpace`."""
        if self._obeys("limit_disk", node, free_bytes, *([] if log_dir is None else [log_dir])):
            (self._full.discard if free_bytes is None else self._full.add)(node)

    def is_disk_full(self, node: str, log_dir: int | None = None) -> Receipt:
        """See :class:`harness.controls.DiskSpace`."""
        return Receipt(node in self._full, f"the disk of node {node} is {'full' if node in self._full else 'sound'}")

    def takes_writes(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`."""
        failed = node in self._full | self.broken | {name for name, _ in self._failed}
        return Receipt(not failed, f"the disk of node {node} takes {'no writes' if failed else 'writes'}")

    def has_refused_write(self, node: str, log_dir: int | None = None) -> Receipt:
        """See :class:`harness.target.Target`."""
        refused = node in self._full & self.written_to
        return Receipt(refused, f"node {node} has refused {'a' if refused else 'no'} write of its own")

    def fail_log_dir(self, node: str, log_dir: int) -> None:
        """See :class:`harness.controls.LogDirectories`."""
        if self._obeys("fail_log_dir", node, log_dir):
            self._failed.add((node, log_dir))
            self._new.pop((node, log_dir), None)

    def mend_log_dir(self, node: str, log_dir: int, *, empty: bool) -> None:
        """See :class:`harness.controls.LogDirectories`."""
        failed = (node, log_dir) in self._failed
        if self._obeys("mend_log_dir", node, log_dir, empty):
            self._failed.discard((node, log_dir))
            if empty and failed:
                self._new[node, log_dir] = not self.is_running(node).holds

    def is_log_dir_failed(self, node: str, log_dir: int) -> Receipt:
        """See :class:`harness.controls.LogDirectories`."""
        failed = (node, log_dir) in self._failed
        return Receipt(failed, f"log directory {log_dir} of node {node} {'has failed' if failed else 'is sound'}")

    def is_log_dir_new(self, node: str, log_dir: int) -> Receipt:
        """See :class:`harness.controls.LogDirectories`."""
        new = self._new.get((node, log_dir), False)
        return Receipt(new, f"log directory {log_dir} of node {node} {'is' if new else 'is not'} a new one")

    def offline_log_dirs(self, node: str) -> Sequence[int]:
        """See :class:`harness.target.Target`."""
        running = self.is_running(node)
        if not running.holds or node in self.silent:
            raise EnvironmentFault(f"node {node} does not answer.")
        return sorted(self.offline.get(node, set()))

    def offset_clock(self, node: str, offset_ms: int) -> None:
        """See :class:`harness.controls.WallClocks`."""
        if self._obeys("offset_clock", node, offset_ms):
            self._offsets_ms[node] = offset_ms

    def clock_offset_ms(self, node: str) -> int:
        """See :class:`harness.controls.WallClocks`."""
        return self._offsets_ms.get(node, 0)

    def shut_down(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        if self._obeys("shut_down", node):
            self._stopped.add(node)

    def is_shut_down(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        return Receipt(node in self._stopped, f"node {node} {'has' if node in self._stopped else 'has not'} shut down")

    def lose_power(self, node: str) -> None:
        """See :class:`harness.controls.Power`."""
        if self._obeys("lose_power", node):
            self._dead.add(node)
            self._powerless.add(node)

    def has_lost_power(self, node: str) -> Receipt:
        """See :class:`harness.controls.Power`."""
        lost = node in self._powerless
        return Receipt(lost, f"node {node} has {'lost' if lost else 'not lost'} power")

    def sync_disk(self, node: str) -> None:
        """See :class:`harness.controls.Power`."""
        self._obeys("sync_disk", node)

    def wipe_disk(self, node: str) -> None:
        """See :class:`harness.controls.DiskContents`."""
        if self._obeys("wipe_disk", node):
            self._wiped.add(node)

    def is_disk_empty(self, node: str) -> Receipt:
        """See :class:`harness.controls.DiskContents`."""
        wiped = node in self._wiped
        return Receipt(wiped, f"the disk of node {node} is {'empty' if wiped else 'not empty'}")

    def damage_log(self, node: str, damage: LogDamage) -> None:
        """See :class:`harness.controls.DiskContents`."""
        if self._obeys("damage_log", node, damage):
            self._damaged.add((node, damage))

    def is_log_damaged(self, node: str, damage: LogDamage) -> Receipt:
        """See :class:`harness.controls.DiskContents`."""
        damaged = (node, damage) in self._damaged
        return Receipt(damaged, f"{damage.partition} of node {node} is {'damaged' if damaged else 'sound'}")

    def elect(self, partition: TopicPartition, leader: NodeId | None, *, unclean: bool) -> None:
        """See :class:`harness.controls.Elections`."""
        self._obeys("elect", partition, leader, unclean)

    def tap(self) -> None:
        """See :class:`harness.controls.WireTaps`."""

    def wire(self) -> Iterator[Mapping[str, Any]]:
        """See :class:`harness.controls.WireTaps`: nothing comes to these nodes."""
        return iter(())

    def committed(self, group: str) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.target.Target`."""
        return self.commits.get(group, {})

    def has_exited(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`."""
        gone = node in self.exited
        return Receipt(gone, f"node {node} has {'ended' if gone else 'not ended'} itself")

    def endings(self) -> list[Ending]:
        """See :class:`harness.target.Target`."""
        return self.ended

    def timeline(self, run: str) -> list[dict[str, Any]]:
        """See :class:`harness.target.Target`."""
        return []

    def replica_logs(self) -> list[Block]:
        """See :class:`harness.target.Target`."""
        return []

    def copy_logs(self, directory: Path) -> None:
        """See :class:`harness.target.Target`."""

    def _obeys(self, method: str, *arguments: Any) -> bool:
        self.calls.append((method, *arguments))
        if method in self.refused:
            raise EnvironmentFault(f"{method} {arguments} is refused, as scripted.")
        return method not in self.ignored
