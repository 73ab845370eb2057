"""corrupt_log: while a broker is down, one batch on its disk is damaged, torn, or replaced by another cluster's."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from faults.down import Down
from harness.controls import DiskContents, Processes
from harness.fault import DiskEffect, FaultTraits, ProcessEffect
from harness.json_schema import when
from harness.model import TopicPartition
from harness.target import LogDamage, Receipt, Target


class CorruptLog(Down):
    """The broker goes down, one batch of one log is damaged, and the broker comes back.

    Attributes:
        topic: whose log is damaged.
        partition: likewise.
        offset: any offset of the batch that is damaged.
        how: ``flip``: one bit of its last byte is inverted, so that its checksum is wrong; ``cut``: the file ends in
            the middle of it, as after a torn write; ``foreign``: a batch of the same offsets and leader epoch is in its
            place, valid in itself, of records that no client here has sent, as after a wrong disk or a wrong backup.
        clean: whether the broker shuts down in good order first, so that the next start trusts what it finds.
        interrupted: whether, after such a shutdown, the broker is started and dies while it loads its logs, before
            the damage is done.
    """

    kind: ClassVar[str] = "corrupt_log"
    needs: ClassVar[type[Target]] = DiskContents
    traits: ClassVar[FaultTraits] = FaultTraits(
        process=ProcessEffect.ENDS,
        disk=DiskEffect.DAMAGE,
        cuts_links=False,
        moves_clock=False,
        shown_as="down, log damaged",
        column="rot",
        column_on_controller=None,
    )

    model_config = ConfigDict(
        json_schema_extra=when(
            "interrupted", {"const": True}, {"required": ["clean"], "properties": {"clean": {"const": True}}}
        )
    )

    topic: str
    partition: int = Field(default=0, ge=0)
    offset: int = Field(ge=0)
    how: Literal["flip", "cut", "foreign"] = "flip"
    clean: bool = False
    interrupted: bool = False

    @model_validator(mode="after")
    def _is_clean_before_it_is_interrupted(self) -> Self:
        if self.interrupted and not self.clean:
            raise ValueError("interrupted needs clean: what is interrupted is the start after a clean shutdown.")
        return self

    def inject(self, target: DiskContents) -> None:
        """Take the broker down, and damage its log."""
        (target.shut_down if self.clean else target.kill)(self.name)
        if self.interrupted:
            target.start_and_die(self.name)
        target.damage_log(self.name, self._damage)

    def probe(self, target: DiskContents) -> Receipt:
        """Holds when the broker is down and what is on its disk there is no sound batch, or a foreign one."""
        down = self._is_down(target)
        damaged = target.is_log_damaged(self.name, self._damage)
        return Receipt(down.holds and damaged.holds, f"{down.seen}; {damaged.seen}")

    def heal(self, target: Processes) -> None:  # type: ignore[override]
        """Start the broker again, also where its death while loading was part of the fault."""
        if self.interrupted and self._is_down(target).holds:
            target.restart(self.name)
        else:
            super().heal(target)

    def probe_healed(self, target: Processes) -> Receipt:  # type: ignore[override]
        """See :class:`faults.down.Down`; having died while loading is no life."""
        return target.is_running(self.name) if self.interrupted else super().probe_healed(target)

    def _is_down(self, target: Processes) -> Receipt:
        if self.interrupted:  # it ended itself when it was asked to die, or was killed while it loaded
            exited = target.has_exited(self.name)
            return exited if exited.holds else target.is_dead(self.name)
        return target.is_shut_down(self.name) if self.clean else target.is_dead(self.name)

    @property
    def _damage(self) -> LogDamage:
        return LogDamage(TopicPartition(self.topic, self.partition), self.offset, self.how)
