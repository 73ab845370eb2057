"""DeleteRecords requests that wait on a leader until the followers have deleted, too (KIP-107).

Follows Kafka's ``DelayedDeleteRecords``: the leader checks it when a fetch raises the low watermark, or the high
watermark rises, and at no other time. A deposed leader answers waiting requests only at their timeouts.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.error_codes import NO_ERROR, ErrorCode
from harness.model import Offset
from harness.replication.messages import AnswerDeleteRecords, ReplicaEffect


class _Waiting(NamedTuple):
    """``before_offset``: the log start that every replica must reach; ``low_watermark``: that after the deletion."""

    token: object
    before_offset: Offset
    low_watermark: Offset


class Deletions:
    """The requests to one replica that wait for its followers."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def done(self, token: object, before_offset: Offset, low_watermark: Offset) -> list[ReplicaEffect]:
        """The leader's log starts at ``before_offset`` or later: answer, or let the client wait."""
        if low_watermark >= before_offset:
            return [AnswerDeleteRecords(token, NO_ERROR, low_watermark)]
        self._waiting.append(_Waiting(token, before_offset, low_watermark))
        return []

    def reached(self, low_watermark: Offset) -> list[ReplicaEffect]:
        """Answer the requests that wait for ``low_watermark``, or less."""
        over = [one for one in self._waiting if one.before_offset <= low_watermark]
        self._waiting = [one for one in self._waiting if one.before_offset > low_watermark]
        return [AnswerDeleteRecords(one.token, NO_ERROR, low_watermark) for one in over]

    def expire(self, token: object) -> list[ReplicaEffect]:
        """The request ``token`` has timed out; nothing when it is not waiting. The leader has deleted the records."""
        over = [one for one in self._waiting if one.token == token]
        self._waiting = [one for one in self._waiting if one.token != token]
        return [AnswerDeleteRecords(one.token, ErrorCode.REQUEST_TIMED_OUT, one.low_watermark) for one in over]
