"""Keeps track of the records that unclean elections permit a cluster to lose."""

from __future__ import annotations

from typing import NamedTuple

from harness.model import Offset
from harness.simulation.core.disk import Disk


class Fork(NamedTuple):
    """One such election.

    ``held``: offset (-1: anywhere) and value of each record of the first leader since; None: there was none. What that
    leader lacked is given up. What it had is as safe as ever.
    """

    leader_epoch: int
    held: frozenset[tuple[Offset, int]] | None


class Forks:
    """All such elections of one run."""

    def __init__(self) -> None:
        self._forks: list[Fork] = []

    def elected(self, leader_epoch: int) -> None:
        """The controller elected a leader that may lack records."""
        self._forks.append(Fork(leader_epoch, None))

    def took_office(self, leader_epoch: int, disk: Disk) -> bool:
        """A leader takes office; whether it is the first since such an election."""
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
        """Whether a record of ``leader_epoch`` was given up; ``offset`` -1: unknown.

        A leader that has not learnt of the election may still acknowledge such records, and deliver them.
        """
        return any(
            fork.leader_epoch > leader_epoch and (fork.held is None or (offset, value) not in fork.held)
            for fork in self._forks
        )
