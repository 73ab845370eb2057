"""What KRaft's controllers say of their metadata log when they are asked: DescribeQuorum, past every proxy."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from harness.clients.conversation import Conversation
from harness.errors import NoAnswer
from harness.wire.messages import (
    METADATA_TOPIC,
    DescribedPartition,
    DescribedTopic,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from harness.wire.messages.quorum import QuorumPartition

_DESCRIBE_QUORUM = 1
"""The newest version that is asked in."""


def described(controller: Conversation) -> QuorumPartition | None:
    """What a controller says while it leads; None: it does not lead, or does not answer."""
    request = DescribeQuorumRequest([DescribedTopic(METADATA_TOPIC, [DescribedPartition(0)])])
    try:
        answer = controller.ask(request, DescribeQuorumResponse, _DESCRIBE_QUORUM)
    except NoAnswer:
        return None
    found = (one for topic in answer.topics for one in topic.partitions if not one.error_code)
    return next(found, None)


class QuorumObservation(NamedTuple):
    """One look at a quorum.

    Attributes:
        leader: the controller that says so.
        quorum: what it says; ``high_watermark`` is not negative.
        time_ns: when it was asked, so no later than what it said was true.
    """

    leader: str
    quorum: QuorumPartition
    time_ns: int


class QuorumProbe:
    """Looks at a quorum; ``controllers`` are conversations with its members, by their names."""

    def __init__(self, controllers: Mapping[str, Conversation]) -> None:
        self._controllers = dict(controllers)

    def look(self) -> QuorumObservation | None:
        """What the one that leads says; None: nobody does, or nobody knows yet what is committed."""
        for name, talk in list(self._controllers.items()):
            asked_ns = time.monotonic_ns()
            quorum = described(talk)
            if quorum is not None and quorum.high_watermark >= 0:
                self._controllers = {name: talk} | self._controllers  # whoever leads is asked first from now on
                return QuorumObservation(name, quorum, asked_ns)
        return None

    def close(self) -> None:
        """Hang up; what is asked afterwards calls again."""
        for talk in self._controllers.values():
            talk.close()
