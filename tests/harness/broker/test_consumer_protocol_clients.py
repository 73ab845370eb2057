"""Group consumers of real clients that speak the consumer protocol (KIP-848), unchanged, against real processes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.broker.cluster import Cluster
from tests.harness.broker.group_members import PARTITIONS, Member, filled_topic, lose_the_coordinator, until


@pytest.fixture
def topic(cluster: Cluster) -> str:
    return filled_topic(cluster)


class ConsumerMember(Member):
    """A member to which the coordinator assigns partitions."""

    def __init__(self, cluster: Cluster, topic: str, group: str | None = None, **settings: Any) -> None:
        super().__init__(cluster, topic, group, **{"group.protocol": "consumer", **settings})


@pytest.mark.parametrize("assignor", ["uniform", "range", None])
def test_members_share_the_partitions_and_take_over_from_one_that_leaves(
    cluster: Cluster, topic: str, assignor: str | None
) -> None:
    settings = {} if assignor is None else {"group.remote.assignor": assignor}
    first = ConsumerMember(cluster, topic, **settings)
    until(lambda: first.assigned == {0, 1, 2, 3}, first)
    second = ConsumerMember(cluster, topic, **settings)
    until(lambda: len(first.assigned) == len(second.assigned) == 2, first, second)
    assert first.assigned | second.assigned == {0, 1, 2, 3}
    until(lambda: len(set(first.read + second.read)) == 10 * PARTITIONS, first, second)
    assert {one.error for one in (*first.commit(), *second.commit())} == {None}
    second.close()
    until(lambda: first.assigned == {0, 1, 2, 3}, first)
    first.close()


def test_a_group_goes_on_where_it_has_committed_whichever_protocol_its_next_members_speak(
    cluster: Cluster, topic: str
) -> None:
    for number, protocol in enumerate(("consumer", "classic", "consumer")):
        member = ConsumerMember(cluster, topic, **{"group.protocol": protocol})
        expected = 10 * PARTITIONS if number == 0 else 1
        until(lambda member=member, expected=expected: len(member.read) == expected, member)  # type: ignore[misc]
        assert {one.error for one in member.commit()} == {None}
        member.close()
        cluster.produce(topic, [b"new"], partition=number)


def test_a_static_member_that_starts_again_gets_its_partitions(cluster: Cluster, topic: str) -> None:
    first, second = (ConsumerMember(cluster, topic, **{"group.instance.id": name}) for name in ("i", "j"))
    until(lambda: len(first.assigned) == len(second.assigned) == 2, first, second)
    before, kept = set(second.assigned), set(first.assigned)
    second.close()
    again = ConsumerMember(cluster, topic, **{"group.instance.id": "j"})
    until(lambda: bool(again.assigned), first, again)
    assert (again.assigned, first.assigned) == (before, kept)
    again.close()
    first.close()


def test_members_of_the_other_protocol_are_refused_while_the_group_has_members(cluster: Cluster, topic: str) -> None:
    first = ConsumerMember(cluster, topic)
    until(lambda: bool(first.assigned), first)
    other = ConsumerMember(cluster, topic, **{"group.protocol": "classic"})
    until(lambda: bool(other.errors), first, other)
    assert "INCONSISTENT_GROUP_PROTOCOL" in other.errors
    other.close()
    first.close()


def test_a_pattern_subscribes_to_all_topics_that_it_matches(cluster: Cluster, topic: str) -> None:
    member = ConsumerMember(cluster, f"^{topic[:-1]}.$", group=topic)
    until(lambda: member.assigned == {0, 1, 2, 3}, member)
    member.close()


def test_an_operator_sees_the_group(cluster: Cluster, topic: str) -> None:
    from confluent_kafka import ConsumerGroupState, ConsumerGroupType
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    member = ConsumerMember(cluster, topic)
    until(lambda: len(member.read) == 10 * PARTITIONS, member)
    member.commit()
    described = admin.describe_consumer_groups([topic])[topic].result()
    (one,) = described.members
    assert (described.state, described.type) == (ConsumerGroupState.STABLE, ConsumerGroupType.CONSUMER)
    assert len(one.assignment.topic_partitions) == len(one.target_assignment.topic_partitions) == PARTITIONS
    listed = admin.list_consumer_groups(types={ConsumerGroupType.CONSUMER}).result().valid
    assert topic in {group.group_id for group in listed}
    with pytest.raises(Exception, match="NON_EMPTY_GROUP"):
        admin.delete_consumer_groups([topic])[topic].result()
    member.close()
    admin.delete_consumer_groups([topic])[topic].result()


def test_a_group_survives_its_coordinator(doomed: Cluster) -> None:
    lose_the_coordinator(doomed, lambda: ConsumerMember(doomed, "t"))
