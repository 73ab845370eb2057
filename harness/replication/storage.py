"""What a replica has asked of its storage, and must remember until storage answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from harness.model import Offset
from harness.replication.messages import (
    Appended,
    AppendFailed,
    BatchSpan,
    LogStartedAt,
    LogStartRaised,
    Truncated,
)


@dataclass(frozen=True, slots=True)
class Producing:
    """A produce request is being appended; then its client is answered, or waits."""

    token: object
    acks: int
    spans: tuple[BatchSpan, ...]


@dataclass(frozen=True, slots=True)
class Replicating:
    """Fetched batches are being appended; then the leader's watermark and log start apply."""

    spans: tuple[BatchSpan, ...]
    high_watermark: Offset
    log_start_offset: Offset


@dataclass(frozen=True, slots=True)
class Cutting:
    """The log is being truncated, or emptied."""


@dataclass(frozen=True, slots=True)
class Raising:
    """The log start is being raised; then the client ``token`` is answered, if one (not None) asked for it."""

    token: object | None


Request: TypeAlias = Producing | Replicating | Cutting | Raising

ANSWERS = frozenset({Appended, AppendFailed, Truncated, LogStartRaised, LogStartedAt})
"""The events by which storage answers."""
