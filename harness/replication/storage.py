"""The pending storage operation of a replica, which it remembers until storage answers."""

from __future__ import annotations

from typing import TypeAlias

from harness.error_codes import ErrorCode
from harness.model import NO_OFFSET, Offset
from harness.replication.message import message
from harness.replication.messages import (
    AnswerDeleteRecords,
    AnswerProduce,
    Appended,
    AppendFailed,
    BatchSpan,
    ConfigsChanged,
    DeleteRecordsExpired,
    FetchAnswered,
    IsrAnswered,
    LogStartedAt,
    LogStartRaised,
    ProduceExpired,
    ReplicaEffect,
    SessionsHeard,
    Truncated,
)


@message
class Producing:
    """A produce request is being appended; then its client is answered, or waits."""

    token: object
    acks: int
    spans: tuple[BatchSpan, ...]


@message
class Replicating:
    """Fetched batches are being appended; then the leader's watermark and log start apply."""

    spans: tuple[BatchSpan, ...]
    high_watermark: Offset
    log_start_offset: Offset


@message
class Cutting:
    """The log is being truncated, or emptied; then the batches of ``then`` fit."""

    then: FetchAnswered | None = None


@message
class Raising:
    """The log start is being raised; then the client ``token`` is answered, if one (not None) asked for it."""

    token: object | None


Request: TypeAlias = Producing | Replicating | Cutting | Raising

ANSWERS = frozenset({Appended, AppendFailed, Truncated, LogStartRaised, LogStartedAt})
"""The events by which storage answers."""

TIMELESS = (ANSWERS - {Appended}) | {ConfigsChanged, DeleteRecordsExpired, IsrAnswered, ProduceExpired, SessionsHeard}
"""The events that carry no time."""


def answers_to_failure(request: Request | None) -> list[ReplicaEffect]:
    """The answers to clients that wait for a failed storage operation."""
    match request:
        case Producing(token):
            return [AnswerProduce(token, ErrorCode.KAFKA_STORAGE_ERROR, NO_OFFSET)]
        case Raising(token) if token is not None:
            return [AnswerDeleteRecords(token, ErrorCode.KAFKA_STORAGE_ERROR, NO_OFFSET)]
        case _:
            return []
