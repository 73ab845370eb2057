"""A group of simulated members on a simulated cluster."""

from __future__ import annotations

from collections.abc import Sequence

from harness.client_ports import BEGINNING, Begins, CommittedOffset
from harness.client_ports import Member as MemberPort
from harness.history.recorder import Change
from harness.membership import Membership
from harness.model import NO_GENERATION, GroupProtocol, TopicPartition
from harness.simulation.stack.simulated_clients import SimulatedClients
from harness.wire.keys import ApiKey
from harness.wire.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tests.harness.broker.virtual_cluster import VirtualCluster

PARTITIONS = [TopicPartition("u", number) for number in range(4)]
BOOTSTRAP = "10.0.0.10:9092,10.0.0.11:9092,10.0.0.12:9092"


class Group:
    """A group of members on a cluster, each of which is polled by a task of its own."""

    def __init__(self, protocol: GroupProtocol = "classic") -> None:
        cluster = _cluster()
        self.protocol = protocol
        self.cluster = cluster
        self.clients = SimulatedClients(cluster.simulated, BOOTSTRAP)
        self.changes: list[tuple[int, Change, list[int]]] = []
        self.has: dict[int, set[int]] = {}
        self.errors: list[tuple[int, str]] = []
        self.hangs: set[int] = set()
        self.members: dict[int, MemberPort] = {}
        self.begins: CommittedOffset | None = CommittedOffset(BEGINNING)

    def join(self, number: int, instance: str | None = None) -> None:
        """Let a member join, in the place of the one that had this number before."""

        async def rebalanced(change: Change, partitions: Sequence[TopicPartition]) -> Begins | None:
            numbers = [name.partition for name in partitions]
            self.changes.append((number, change, numbers))
            self.has[number] = self.has[number] | {*numbers} if change == "assigned" else self.has[number] - {*numbers}
            return None if self.begins is None else dict.fromkeys(partitions, self.begins)

        membership = Membership(
            "g", PARTITIONS, instance=instance, session_timeout_s=1, poll_timeout_s=2, protocol=self.protocol
        )
        member = self.clients.member(f"m{number}", membership, "read_uncommitted", rebalanced)
        self.members[number] = member
        self.has[number] = set()
        self.clients.begin(self._polls(number, member))

    async def _polls(self, number: int, member: MemberPort) -> None:
        while self.members.get(number) is member and not self.clients.stopping:
            if number in self.hangs:
                await self.clients.sleep(0.1)
                continue
            _, error, _ = await member.poll(100, 0.1)
            if error is not None:
                self.errors.append((number, error))
                break
        await member.close()

    def leave(self, number: int) -> None:
        """Let a member close; the task that polls it sees that at once."""
        del self.members[number]

    def sleep(self, seconds: float = 4) -> None:
        self.cluster.world.sleep(seconds)

    def commit(self, number: int, offset: int) -> list[str | None]:
        """What a member's commit of partition 0 is answered."""
        outcome: list[str | None] = []

        async def commit() -> None:
            outcome.append(await self.members[number].commit({PARTITIONS[0]: CommittedOffset(offset)}))

        self.clients.begin(commit())
        self.sleep(2)
        return outcome


def stand_still_past_the_generation(group: Group) -> None:
    """A member that stands still names its generation, which is over, until the coordinator refuses its commit."""
    group.join(0)
    group.join(1)
    group.sleep()
    group.hangs.add(0)
    group.members[0].stand_still(10)
    group.sleep(5)
    assert NO_GENERATION < group.members[0].generation < group.members[1].generation
    assert group.commit(0, 5) == ["UNKNOWN_MEMBER_ID"]
    assert group.members[0].generation == NO_GENERATION


def _cluster() -> VirtualCluster:
    cluster = VirtualCluster("4.1")
    assignments = [CreatableReplicaAssignment(number, [1, 2, 0]) for number in range(len(PARTITIONS))]
    cluster.call(1, ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([CreatableTopic("u", -1, -1, assignments)]))
    cluster.world.sleep(1)
    return cluster
