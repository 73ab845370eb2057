"""How a consumer takes part in a group: what it subscribes to, by which protocol, and how it commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from harness.model import GroupProtocol, TopicPartition

Assignor = Literal["range", "roundrobin", "cooperative-sticky"]
"""How the members of a group share the partitions; with the last one a rebalance moves only what has to move."""

RemoteAssignor = Literal["uniform", "range"]
"""How the coordinator of a group of the consumer protocol shares the partitions among its members."""

Subscription = Literal["names", "pattern"]
"""How a member says which topics it reads: by their names, or by a regular expression that matches just these."""

CommitMode = Literal["sync", "async", "auto"]
"""How a member commits: and waits for the answer; or takes it with a later poll; or its client commits by itself."""


Begin = Literal["client", "harness"]
"""Who finds where a member begins to read: its client by itself, or the harness, which has it seek there."""


class Commits(NamedTuple):
    """How a member commits, and how long after a commit the next one follows."""

    mode: CommitMode = "sync"
    every_s: float = 0.5

    @property
    def is_automatic(self) -> bool:
        """Whether the client commits by itself, within a poll or a close or beside them (``enable.auto.commit``)."""
        return self.mode == "auto"


WHEN_TOLD = Commits()
"""A member that commits when its workload calls for it, and waits."""


@dataclass(frozen=True, slots=True)
class Membership:
    """How a consumer takes part in a group.

    Attributes:
        group: which one.
        partitions: all partitions of the topics that it subscribes to.
        assignor: the only assignment protocol that it knows, in the classic protocol.
        instance: the name of a static member (KIP-345), which does not leave the group when it is closed.
        session_timeout_s: after how long without a heartbeat the coordinator removes it; in the consumer protocol the
            setting ``group.consumer.session.timeout.ms`` of the brokers says that.
        poll_timeout_s: after how long without a poll it leaves by itself; not below ``session_timeout_s``.
        protocol: ``classic``, or ``consumer`` (KIP-848).
        remote_assignor: the assignor that it asks for, in the consumer protocol.
        subscription: how it says which topics it reads. A pattern is resolved by the client in the classic protocol,
            and by the coordinator in the consumer protocol.
        commits: how it commits.
        begin: who finds where it begins, in real time; in virtual time always the harness.
    """

    group: str
    partitions: Sequence[TopicPartition]
    assignor: Assignor = "range"
    instance: str | None = None
    session_timeout_s: float = 3.0
    poll_timeout_s: float = 6.0
    protocol: GroupProtocol = "classic"
    remote_assignor: RemoteAssignor = "uniform"
    subscription: Subscription = "names"
    commits: Commits = WHEN_TOLD
    begin: Begin = "harness"

    @property
    def topics(self) -> list[str]:
        """What it subscribes to."""
        return sorted({name.topic for name in self.partitions})

    @property
    def pattern(self) -> str | None:
        """A regular expression that matches these topics and no others, begins with ``^``, and means the same in all
        dialects: POSIX's extended ones, RE2, Java and Python; None: it subscribes by names.
        """  # noqa: D205 - one sentence
        if self.subscription == "names":
            return None
        return f"^({'|'.join(topic.replace('.', '[.]') for topic in self.topics)})$"
