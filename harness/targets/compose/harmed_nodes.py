"""Harms the brokers of a compose file whatever program they run, but for its processes.

That needs nothing of the program: packet filters, Toxiproxy for clients, a volume of limited size, and a library
that is preloaded for clocks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from harness.errors import NoSuchProbe
from harness.model import CLIENTS, CONTROLLER, Link
from harness.target import Receipt
from harness.targets.compose.composed_nodes import ComposedNodes


class HarmedNodes(ComposedNodes):
    """The methods of :mod:`harness.controls` about links, disks and clocks. Its arguments are those of the base."""

    @abstractmethod
    def _why_no_clock(self, node: str) -> str:
        """Why the clock of a node cannot be moved, in a sentence."""

    # ------------------------------------------------------------------------------------------------ links

    def cut(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.Links`."""
        self.toxics.cut(_of_clients(links))
        self.network.cut(_among_nodes(links))

    def mend(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.Links`."""
        self.toxics.mend(_of_clients(links))
        self.network.mend(_among_nodes(links))

    def is_cut(self, link: Link) -> Receipt:
        """See :class:`harness.controls.Links`."""
        if CLIENTS in link:
            return self.toxics.is_cut(link)
        return self.network.is_cut(link)

    def carries(self, link: Link) -> Receipt:
        """See :class:`harness.controls.Links`."""
        if CLIENTS in link:
            return self.toxics.carries(link)
        return self.network.carries(link)

    # ------------------------------------------------------------------------------------------------ disks

    def limit_disk(self, node: str, free_bytes: int | None, log_dir: int | None = None) -> None:
        """See :class:`harness.controls.DiskSpace`. There is one log directory, and a file beside it takes its space."""
        del log_dir
        self.volumes.limit(self._broker(node), free_bytes)

    def is_disk_full(self, node: str, log_dir: int | None = None) -> Receipt:
        """See :class:`harness.controls.DiskSpace`."""
        del log_dir
        return self.volumes.is_full(self._broker(node))

    def takes_writes(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`."""
        return self.volumes.takes_writes(self._broker(node))

    def has_refused_write(self, node: str, log_dir: int | None = None) -> Receipt:
        """See :class:`harness.target.Target`. The broker's log has the refusal."""
        del log_dir
        if node == CONTROLLER:
            return Receipt(False, "the controller's disk is not limited")
        return self.volumes.has_refused_write(node)

    def _broker(self, node: str) -> str:
        if node == CONTROLLER:
            raise NoSuchProbe("the disk of the controller is a directory of the run, which nothing is done to.")
        return self._node(node).name

    # ------------------------------------------------------------------------------------------------ clocks

    def offset_clock(self, node: str, offset_ms: int) -> None:
        """See :class:`harness.controls.WallClocks`."""
        self._clocked(node)
        self.clocks.offset(node, offset_ms)

    def clock_offset_ms(self, node: str) -> int:
        """See :class:`harness.controls.WallClocks`."""
        self._clocked(node)
        return self.clocks.offset_ms(node)

    def _clocked(self, node: str) -> None:
        self._node(node)
        if node not in self._shim_directories():
            raise NoSuchProbe(f"the clock of node {node} cannot be moved.", self._why_no_clock(node))


def _of_clients(links: Sequence[Link]) -> list[Link]:
    return [link for link in links if CLIENTS in link]


def _among_nodes(links: Sequence[Link]) -> list[Link]:
    return [link for link in links if CLIENTS not in link]
