"""partition: all traffic stops on chosen directed links, and no connection is closed."""

from __future__ import annotations

from typing import ClassVar

from faults.link_fault import LinkFault
from harness.controls import Kills, Links, Pauses, Power, Shutdowns
from harness.fault import DiskEffect, FaultTraits, ProcessEffect
from harness.model import CLIENTS, Link
from harness.observations import NodeStates
from harness.target import Receipt, Target, supports


class Partition(LinkFault):
    """Cuts the links, in every connection."""

    kind: ClassVar[str] = "partition"
    needs: ClassVar[type[Target]] = Links
    traits: ClassVar[FaultTraits] = FaultTraits(
        process=ProcessEffect.NONE,
        disk=DiskEffect.NOTHING,
        cuts_links=True,
        moves_clock=False,
        shown_as=None,
        column="partition",
        column_on_controller="partition",
    )

    def inject(self, target: Links) -> None:
        """Cut the links."""
        target.cut(self.named_links())

    def probe(self, target: Links) -> Receipt:
        """Holds when a request got stuck on every link."""
        return Receipt.of_all(target.is_cut(link) for link in self.named_links())

    def heal(self, target: Links) -> None:
        """Mend the links."""
        target.mend(self.named_links())

    def probe_healed(self, target: Links) -> Receipt:
        """Holds when a request gets through on every link.

        Except for those of brokers that have ended themselves, and those on which none can: nothing is withheld there,
        and another fault keeps the answer, which the receipt names.
        """
        return Receipt.of_all(_carries_again(target, link) for link in self.named_links())


def _carries_again(target: Links, link: Link) -> Receipt:
    for end in link:
        if end != CLIENTS and supports(target, NodeStates) and (ended := target.has_exited(end)).holds:
            return ended
    carried = target.carries(link)
    if carried.holds:
        return carried
    cut = target.is_cut(link)
    if cut.holds:
        return Receipt(False, cut.seen)
    return _unanswerable(target, link) or carried


def _unanswerable(target: Links, link: Link) -> Receipt | None:
    """Why no answer can come over a link that withholds nothing; None: one should."""
    end = link.destination
    if end != CLIENTS:
        probes = [target.has_lost_power] if supports(target, Power) else []
        probes += [target.is_dead] if supports(target, Kills) else []
        probes += [target.is_shut_down] if supports(target, Shutdowns) else []
        probes += [target.is_paused] if supports(target, Pauses) else []
        for probe in probes:
            if (gone := probe(end)).holds:
                return Receipt(True, f"{link} withholds nothing, and no broker answers: {gone.seen}")
    if (back := target.is_cut(Link(end, link.source))).holds:
        return Receipt(True, f"{link} withholds nothing, and its answers are withheld: {back.seen}")
    return None
