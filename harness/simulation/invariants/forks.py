"""What elections that may lose records have given up, and what they have not."""

from __future__ import annotations

from typing import NamedTuple

from harness.model import Offset
from harness.simulation.core.disk import Disk


class Fork(NamedTuple):
    """One of them.

    ``held``: by offset and value what the first to take office in its epoch, or a later one, had then (offset -1:
    anywhere); None: nobody did. What that one did not have is given up. What it had is as safe as ever.
    """

    leader_epoch: int
    held: frozenset[tuple[Offset, int]] | None


class Forks:
    """All of them, in one run."""

    def __init__(self) -> None:
        self._forks: list[Fork] = []

    def elected(self, leader_epoch: int) -> None:
        """Somebody was elected who may lack what was committed."""
        self._forks.append(Fork(leader_epoch, None))

    def took_office(self, leader_epoch: int, disk: Disk) -> bool:
        """Somebody leads from now on; whether that is the first since such an election."""
        if not any(fork.held is None and fork.leader_epoch <= leader_epoch for fork in self._forks):
            return False
        values = [(offset, record.value) for offset, record in enumerate(disk.records, disk.start)]
        held = frozenset([*values, *((-1, value) for _, value in values)])
        self._forks = [
            fork._replace(held=held) if fork.held is None and fork.leader_epoch <= leader_epoch else fork
            for fork in self._forks
        ]
        return True

    def gave_up(self, leader_epoch: int, offset: Offset, value: int) -> bool:
        """Whether a record of ``leader_epoch`` was given up; ``offset`` -1: nobody was told where it is.

        A leader that has not heard of the election may still acknowledge such records, and deliver them.
        """
        return any(
            fork.leader_epoch > leader_epoch and (fork.held is None or (offset, value) not in fork.held)
            for fork in self._forks
        )
