"""Asks KRaft's controllers for the state of their metadata log: DescribeQuorum, past every proxy."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from harness.clients.conversation import Conversation
from harness.errors import NoAnswer
from harness.wire.messages.quorum import (
    METADATA_TOPIC,
    DescribedPartition,
    DescribedTopic,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
)

_DESCRIBE_QUORUM = 1
"""The newest request version that is used."""


def described(controller: Conversation) -> QuorumPartition | None:
    """The quorum as its leader sees it; None: this controller does not lead, or does not answer."""
    request = DescribeQuorumRequest([DescribedTopic(METADATA_TOPIC, [DescribedPartition(0)])])
    try:
        answer = controller.ask(request, DescribeQuorumResponse, _DESCRIBE_QUORUM)
    except NoAnswer:
        return None
    found = (one for topic in answer.topics for one in topic.partitions if not one.error_code)
    return next(found, None)


class QuorumObservation(NamedTuple):
    """One observation of a quorum.

    Attributes:
        leader: the controller that answered.
        quorum: its answer; ``high_watermark`` is not negative.
        time_ns: when the request was sent, which is no later than the state in the answer.
    """

    leader: str
    quorum: QuorumPartition
    time_ns: int


class QuorumProbe:
    """Observes a quorum; ``controllers`` are conversations with its members, by their names."""

    def __init__(self, controllers: Mapping[str, Conversation]) -> None:
        self._controllers = dict(controllers)

    def look(self) -> QuorumObservation | None:
        """The leader's answer; None: no controller leads, or the leader does not know the high watermark yet."""
        for name, talk in list(self._controllers.items()):
            asked_ns = time.monotonic_ns()
            quorum = described(talk)
            if quorum is not None and quorum.high_watermark >= 0:
                self._controllers = {name: talk} | self._controllers  # ask the leader first from now on
                return QuorumObservation(name, quorum, asked_ns)
        return None

    def close(self) -> None:
        """Close the connections; a later request connects again."""
        for talk in self._controllers.values():
            talk.close()
