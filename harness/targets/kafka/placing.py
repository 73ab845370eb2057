"""Chooses the log directory of each new replica on brokers with several (KIP-113).

Kafka takes the one with the fewest replicas, internal topics included, and any of equals. Schedules assume the rule of
the built-in brokers: only the scenario's topics count, and the first of equals wins. So the harness sends
AlterReplicaLogDirs before it creates the topic; the brokers remember the directory, and answer that the replica is
unknown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from harness.clients.conversation import Conversation
from harness.error_codes import ErrorCode
from harness.errors import EnvironmentFault
from harness.model import TopicPartition, node_id
from harness.target import TopicSpec
from harness.targets.addresses import Address
from harness.targets.kafka.topics import assignment_of
from harness.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)

FIRST_TOLD = (1, 1)
"""The first release with AlterReplicaLogDirs."""

_ALTER_REPLICA_LOG_DIRS = 2
_ANSWER_TIMEOUT_S = 5.0
_KEPT_IN_MIND = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class Placing:
    """The log directories of the replicas of a cluster's topics.

    Args:
        log_dirs: the paths of each broker's log directories, in order.
    """

    def __init__(self, log_dirs: Mapping[str, Sequence[Path]]) -> None:
        self._log_dirs = log_dirs
        self._taken: Counter[Path] = Counter()

    def places(self, topic: TopicSpec) -> Mapping[str, Mapping[Path, Sequence[TopicPartition]]]:
        """The replicas of a new topic by broker and directory; later topics count them."""
        found: dict[str, dict[Path, list[TopicPartition]]] = defaultdict(lambda: defaultdict(list))
        for number, replicas in enumerate(assignment_of(topic, len(self._log_dirs))):
            for broker in map(str, replicas):
                place = min(self._log_dirs[broker], key=lambda path: self._taken[path])
                self._taken[place] += 1
                found[broker][place].append(TopicPartition(topic.name, number))
        return found


def tell(node: str, address: Address, places: Mapping[Path, Sequence[TopicPartition]]) -> None:
    """Send broker ``node`` the directories of its new replicas, all of one topic.

    Raises:
        NoAnswer: it does not answer.
        EnvironmentFault: it refuses.
    """
    dirs = [
        AlterReplicaLogDir(str(path), [AlterReplicaLogDirTopic(names[0].topic, [name.partition for name in names])])
        for path, names in places.items()
    ]
    with closing(Conversation(node_id(node), address, _ANSWER_TIMEOUT_S)) as conversation:
        request = AlterReplicaLogDirsRequest(dirs)
        answer = conversation.ask(request, AlterReplicaLogDirsResponse, _ALTER_REPLICA_LOG_DIRS)
    codes = {one.error_code for topic in answer.results for one in topic.partitions}
    if refused := sorted(codes - _KEPT_IN_MIND):
        raise EnvironmentFault(f"node {node} refuses AlterReplicaLogDirs: error {refused[0]}.")
