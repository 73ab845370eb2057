"""The simulated members of groups: they act as librdkafka's do when members come, hang and go, and coordinators die."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.client_ports import BEGINNING, Begins, CommittedOffset, Membership
from harness.client_ports import Member as MemberPort
from harness.history.recorder import Change
from harness.model import NO_GENERATION, TopicPartition
from harness.simulation.stack.simulated_clients import SimulatedClients
from harness.wire.keys import ApiKey
from harness.wire.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tests.harness.broker.virtual_cluster import VirtualCluster

PARTITIONS = [TopicPartition("u", number) for number in range(4)]
BOOTSTRAP = "10.0.0.10:9092,10.0.0.11:9092,10.0.0.12:9092"


class Group:
    """A group of members on a cluster, each of which is polled by a task of its own."""

    def __init__(self, cluster: VirtualCluster) -> None:
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
            self.has[number] = set(numbers) if change == "assigned" else self.has[number] - set(numbers)
            return None if self.begins is None else dict.fromkeys(partitions, self.begins)

        membership = Membership("g", PARTITIONS, instance=instance, session_timeout_s=1, poll_timeout_s=2)
        member = self.clients.member(f"m{number}", membership, "read_uncommitted", rebalanced)
        self.members[number] = member
        self.has[number] = set()
        self.clients.begin(self._polls(number, member))

    async def _polls(self, number: int, member: MemberPort) -> None:
        while self.members.get(number) is member and not self.clients.stopping:
            if number in self.hangs:
                await self.clients.sleep(0.1)
                continue
            _, error = await member.poll(100, 0.1)
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


@pytest.fixture
def group() -> Group:
    cluster = VirtualCluster()
    assignments = [CreatableReplicaAssignment(number, [1, 2, 0]) for number in range(len(PARTITIONS))]
    cluster.call(1, ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([CreatableTopic("u", -1, -1, assignments)]))
    cluster.world.sleep(1)
    return Group(cluster)


def test_members_share_what_there_is_as_they_come_and_go(group: Group) -> None:
    group.join(0)
    group.sleep()
    assert group.has == {0: {0, 1, 2, 3}}
    group.join(1)
    group.sleep()
    assert group.has == {0: {0, 1}, 1: {2, 3}}
    group.leave(0)
    group.sleep()
    assert group.has[1] == {0, 1, 2, 3}
    assert group.changes[:3] == [(0, "assigned", [0, 1, 2, 3]), (0, "revoked", [0, 1, 2, 3]), (0, "assigned", [0, 1])]
    assert (0, "revoked", [0, 1]) in group.changes


def test_a_member_that_hangs_loses_what_it_has_and_learns_it_with_its_next_poll(group: Group) -> None:
    group.join(0)
    group.join(1)
    group.sleep()
    shared = group.members[0].generation
    assert shared == group.members[1].generation > NO_GENERATION
    group.hangs.add(0)
    group.sleep(5)
    assert group.has[1] == {0, 1, 2, 3}
    assert group.members[0].generation == NO_GENERATION
    assert group.members[1].generation > shared
    assert group.commit(0, 5) == ["UNKNOWN_MEMBER_ID"]
    group.hangs.clear()
    group.sleep()
    assert (0, "lost", [0, 1]) in group.changes
    assert sorted([*group.has[0], *group.has[1]]) == [0, 1, 2, 3]
    assert len(group.has[0]) == 2


def test_a_member_that_stood_still_does_not_know_that_its_generation_is_over_until_its_commit_is_refused(
    group: Group,
) -> None:
    group.join(0)
    group.join(1)
    group.sleep()
    group.hangs.add(0)
    group.members[0].stand_still(10)
    group.sleep(5)
    assert NO_GENERATION < group.members[0].generation < group.members[1].generation
    assert group.commit(0, 5) == ["UNKNOWN_MEMBER_ID"]
    assert group.members[0].generation == NO_GENERATION


def test_members_go_on_with_the_next_coordinator(group: Group) -> None:
    group.join(0)
    group.join(1)
    group.sleep()
    assert group.commit(0, 5) == [None]
    group.cluster.kill(0)
    group.sleep(8)
    assert sorted([*group.has[0], *group.has[1]]) == [0, 1, 2, 3]
    owner = next(number for number, has in group.has.items() if 0 in has)
    assert group.commit(owner, 6) == [None]


def test_a_static_member_that_comes_back_has_what_it_had_and_nothing_moves(group: Group) -> None:
    for number in (0, 1):
        group.join(number, instance=f"i{number}")
    group.sleep()
    had = dict(group.has)
    group.leave(0)
    group.cluster.world.sleep(0.3)
    group.join(0, instance="i0")
    group.sleep()
    assert group.has == had
    assert [one for one in group.changes if one[0] == 1] == [(1, "assigned", sorted(had[1]))]


def test_a_static_member_that_was_replaced_is_fenced(group: Group) -> None:
    group.join(0, instance="i")
    group.sleep()
    group.join(1, instance="i")
    group.sleep()
    assert group.has[1] == {0, 1, 2, 3}
    assert (0, "lost", [0, 1, 2, 3]) in group.changes
    assert group.errors == [(0, "FENCED_INSTANCE_ID")]


def test_a_member_that_does_not_know_where_to_begin_says_so(group: Group) -> None:
    group.begins = None
    group.join(0)
    group.sleep()
    assert group.errors == [(0, "_STATE")]
