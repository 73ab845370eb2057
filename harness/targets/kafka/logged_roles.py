"""Reads role and leader epoch of the replicas of a broker before 2.4 from its log: no request returns them.

The log (``state.change.logger`` at TRACE) has a line before and after each transition that the controller requests.
Between the two lines the role is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from harness.model import TopicPartition

_PLACE = r"partition (?:\[(?P<topic>[^,]+),(?P<number>\d+)\]|(?P<name>\S+)-(?P<index>\d+))"
_ORDER = r"(?i)correlation ?id (?P<order>\d+ from controller \d+ epoch \d+)"
_RECEIVED = re.compile(rf"{_ORDER} for {_PLACE}")
_EPOCH = re.compile(r"(?i)received LeaderAndIsr request .*leaderEpoch=(\d+)")
_BEGUN = re.compile(rf"{_ORDER} starting the become-(?:leader|follower) transition for {_PLACE}")
_GIVEN_UP = re.compile(rf"{_ORDER} for {_PLACE} .*cannot become")
_COMPLETED = re.compile(rf"{_ORDER} for the become-(?P<role>leader|follower) transition for {_PLACE}")
_STARTED = re.compile(r"(?i)\bstarting \(kafka\.server\.KafkaServer\)")


class LoggedRole(NamedTuple):
    """The role and epoch that a broker assumes for its replica; ``role`` is leader or follower."""

    role: str
    leader_epoch: int


class LoggedRoles:
    """The logged_roles of one broker, over all its incarnations; ``log`` is its log file, which need not exist yet."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._position = 0
        self._ordered: dict[tuple[TopicPartition, str], int] = {}
        self._now: dict[TopicPartition, LoggedRole] = {}

    def read_on(self) -> Mapping[TopicPartition, LoggedRole]:
        """Its current logged role about each replica that is not in a transition."""
        if self._log.exists():
            with self._log.open("rb") as file:
                file.seek(self._position)
                lines = file.read().splitlines(keepends=True)
            whole = [line for line in lines if line.endswith(b"\n")]
            self._position += sum(map(len, whole))
            for line in whole:
                self._take(line.decode(errors="replace"))
        return dict(self._now)

    def _take(self, line: str) -> None:
        if _STARTED.search(line):
            self._ordered.clear()
            self._now.clear()
        elif (epoch := _EPOCH.search(line)) and (received := _RECEIVED.search(line)):
            self._ordered[_place(received), received["order"]] = int(epoch[1])
        elif begun := _BEGUN.search(line):
            self._now.pop(_place(begun), None)
        elif given_up := _GIVEN_UP.search(line):
            self._ordered.pop((_place(given_up), given_up["order"]), None)
        elif completed := _COMPLETED.search(line):
            ordered = self._ordered.pop((_place(completed), completed["order"]), None)
            if ordered is not None:
                self._now[_place(completed)] = LoggedRole(completed["role"].lower(), ordered)


def _place(found: re.Match[str]) -> TopicPartition:
    if found["topic"] is not None:
        return TopicPartition(found["topic"], int(found["number"]))
    return TopicPartition(found["name"], int(found["index"]))
