"""clock: a node's wall clock steps away from true time, as after a bad NTP correction."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from faults.node_fault import NodeFault
from harness.clock import MAX_OFFSET_MS
from harness.controls import WallClocks
from harness.fault import DiskEffect, FaultTraits, ProcessEffect
from harness.target import Receipt, Target

TOLERANCE_MS = 250
"""How far a reading may be off: it includes the time the answer took. A smaller step cannot be proven."""


class Clock(NodeFault):
    """The wall clock is off; the monotonic clock is untouched.

    Attributes:
        offset_ms: the wall clock minus true time, in milliseconds.
    """

    kind: ClassVar[str] = "clock"
    needs: ClassVar[type[Target]] = WallClocks
    traits: ClassVar[FaultTraits] = FaultTraits(
        process=ProcessEffect.NONE,
        disk=DiskEffect.NOTHING,
        cuts_links=False,
        moves_clock=True,
        shown_as=None,
        column="clock",
        column_on_controller=None,
    )

    offset_ms: int = Field(ge=-MAX_OFFSET_MS, le=MAX_OFFSET_MS)

    @property
    def clock_error_ms(self) -> float:
        """See :class:`harness.fault.ClockFault`."""
        return abs(self.offset_ms)

    def claims(self) -> list[str]:
        """See :meth:`harness.fault.Fault.claims`."""
        return [f"the clock of node {self.name}"]

    def inject(self, target: WallClocks) -> None:
        """Step the clock."""
        target.offset_clock(self.name, self.offset_ms)

    def probe(self, target: WallClocks) -> Receipt:
        """Holds when the node's own clock reads off by ``offset_ms``, and by more than the reading's error."""
        seen = target.clock_offset_ms(self.name)
        off = abs(seen) > TOLERANCE_MS and abs(seen - self.offset_ms) <= TOLERANCE_MS
        return Receipt(off, f"the clock of node {self.name} reads {seen:+d} ms off")

    def heal(self, target: WallClocks) -> None:
        """Step the clock back to true time."""
        target.offset_clock(self.name, 0)

    def probe_healed(self, target: WallClocks) -> Receipt:
        """Holds when the node's own clock reads true time."""
        seen = target.clock_offset_ms(self.name)
        return Receipt(abs(seen) <= TOLERANCE_MS, f"the clock of node {self.name} reads {seen:+d} ms off")
