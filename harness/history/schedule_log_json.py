"""The document model of ``schedule_log.json``, by which later processes validate what the runner wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, Field

Partition = Annotated[str, Field(pattern=r"^.*-[0-9]{1,9}$")]
"""``ledger-0``"""


class GroupDocument(BaseModel):
    """The records that a consumer group was given, and its position."""

    given: Mapping[Partition, list[int]]
    position: Mapping[Partition, int]


class ScheduleLogDocument(BaseModel):
    """``schedule_log.json``; see ``harness.runner.schedule_log.ScheduleLog`` for what it means."""

    values: Mapping[Partition, Mapping[str, int]]
    orders: list[tuple[str, Partition, list[tuple[str, int | None]]]]
    replicas: Mapping[Partition, list[int]] = {}
    groups: Mapping[str, GroupDocument]
    unavailable: list[str] = []
    leaderless: list[str] = []
    unsettled: list[str] = []
    exited: list[str] = []
