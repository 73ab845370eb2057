"""The topics of a plan: as a target creates them, and those that a workload sends to besides the scenario's."""

from __future__ import annotations

from harness.model import NodeId
from harness.scenario import Scenario, Topic
from harness.target import TopicSpec
from harness.targets.system import System
from harness.workload import WorkloadParameters


def topic_spec(topic: Topic) -> TopicSpec:
    """A topic of a scenario as a target creates it."""
    assignment = None
    if topic.replicas is not None:
        assignment = (tuple(map(NodeId, topic.replicas)),) * topic.partitions
    return TopicSpec(topic.name, topic.partitions, topic.replication_factor, assignment)


def as_named_on(system: System, scenario: Scenario) -> Scenario:
    """The scenario with the names that its topics have on ``system``; its schedule names none, or they stay."""
    given, prefix = system.given_topics, system.prefix
    assert not (scenario.schedule and (given or prefix)), "such a system refuses schedules"
    names = [*given, *(f"{prefix}{topic.name}" for topic in scenario.topics[len(given) :])]
    renamed = zip(scenario.topics, names, strict=True)
    return scenario.model_copy(
        update={"topics": tuple(topic.model_copy(update={"name": one}) for topic, one in renamed)}
    )


def with_topics(scenario: Scenario, workload: WorkloadParameters) -> Scenario:
    """The scenario with the topics that its workload sends to besides."""
    own = workload.own_topics([topic_spec(topic) for topic in scenario.topics])
    topics = [
        Topic(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            replicas=topic.assignment[0] if topic.assignment else None,
        )
        for topic in own
    ]
    return scenario.model_copy(update={"topics": (*scenario.topics, *topics)})
