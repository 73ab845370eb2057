"""What a replica must never find out about itself: an assertion of its own, after every event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.model import NO_EPOCH, NO_OFFSET

if TYPE_CHECKING:
    from harness.replication.replica import Replica


class Invariants:
    """What one replica remembers in order to check itself."""

    __slots__ = ("_led_epoch", "_led_watermark")

    def __init__(self) -> None:
        self._led_epoch, self._led_watermark = NO_EPOCH, NO_OFFSET

    def forget(self) -> None:
        """The log has been cut on purpose."""
        self._led_epoch = NO_EPOCH

    def check(self, replica: Replica, *, may_lead: bool) -> None:
        """Assert what always holds; ``may_lead``: whether the ISR allows it to."""
        name, watermark = replica.partition, replica.high_watermark
        assert replica.log_start_offset <= watermark <= replica.log_end_offset, f"{name}: watermark"
        if replica.role != "leader":
            return
        assert replica.leader == replica.node, f"{name}: leads, but the leader is {replica.leader}"
        assert may_lead, f"{name}: leads outside its ISR {replica.isr}"
        fell = self._led_epoch == replica.leader_epoch and watermark < self._led_watermark
        assert not fell, f"{name}: watermark fell to {watermark}"
        self._led_epoch, self._led_watermark = replica.leader_epoch, watermark
