"""Replicas with one rule left out, to prove that leaving it out shows."""

from __future__ import annotations

from dataclasses import replace

from harness.model import NO_EPOCH, NodeId
from harness.replication.isr import InSyncReplicas
from harness.replication.messages import ErrorCode, FetchAnswered, FetchReceived, ReplicaEffect
from harness.replication.replica import Replica


class CountsDivergingFetches(Replica):
    """KAFKA-13141: the offset of a fetch counts even when the answer is that the logs diverge before it."""

    def _fetch_received(self, fetch: FetchReceived) -> list[ReplicaEffect]:
        effects = super()._fetch_received(fetch)
        answer = self.judge_fetch(fetch)
        if self._leadership and answer.error is ErrorCode.NONE and answer.diverging is not None:
            counted = self._leadership.fetched(replace(fetch, last_fetched_epoch=NO_EPOCH))
            effects += counted[1:]
        return effects


class _CommittedOnly(InSyncReplicas):
    """An in-sync set that takes what is confirmed for all there is."""

    __slots__ = ()

    @property
    def maximal(self) -> tuple[NodeId, ...]:
        return self.members


class ForgetsItsProposal(Replica):
    """KIP-497: the watermark waits for the ISR as last confirmed, though the controller may have a larger one."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self._isr = _CommittedOnly()


class HearsStaleAnswers(Replica):
    """KAFKA-13207: an answer is taken in whoever this replica follows by now, even when it leads."""

    def _is_stale(self, answer: FetchAnswered) -> bool:
        return False
