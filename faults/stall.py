"""stall: bytes under way in existing connections arrive later than those sent in new ones."""

from __future__ import annotations

from typing import ClassVar

from faults.link_fault import LinkFault
from harness.controls import ConnectionStalls
from harness.fault import DiskEffect, FaultTraits, ProcessEffect
from harness.target import Receipt, Target


class Stall(LinkFault):
    """Withholds bytes on the links that a partition would cut, in the connections that there are when it begins.

    New connections are not touched. So a client that gives a request up and sends it again in a new connection, as
    Kafka's clients do, is answered there; and when this is healed, the first one arrives after all.
    """

    kind: ClassVar[str] = "stall"
    needs: ClassVar[type[Target]] = ConnectionStalls
    traits: ClassVar[FaultTraits] = FaultTraits(
        process=ProcessEffect.NONE,
        disk=DiskEffect.NOTHING,
        cuts_links=True,
        moves_clock=False,
        shown_as=None,
        column=None,
        column_on_controller=None,
    )

    def inject(self, target: ConnectionStalls) -> None:
        """Stall the links."""
        target.stall(self.named_links())

    def probe(self, target: ConnectionStalls) -> Receipt:
        """Holds when on every link a request got stuck in a connection from before, and none in a new one."""
        return Receipt.of_all(target.is_stalled(link) for link in self.named_links())

    def heal(self, target: ConnectionStalls) -> None:
        """Let the links go on."""
        target.resume_links(self.named_links())

    def probe_healed(self, target: ConnectionStalls) -> Receipt:
        """Holds when on every link that request got through."""
        return Receipt.of_all(target.has_gone_on(link) for link in self.named_links())
