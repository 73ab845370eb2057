"""Kafka's own command-line tools against a built-in cluster of real processes.

``kafka-configs.sh`` is that of Kafka 3.9.1; ``kafka-topics.sh`` that of 2.8.1, the last release here whose core has it.
"""

from __future__ import annotations

import subprocess

import pytest

from tests.harness.broker.cluster import Cluster, wait_until
from tests.harness.short_java import short_java
from tests.harness.targets.contract import fetched_or_skip

TOPICS = ("2.8.1", "kafka.admin.TopicCommand")
CONFIGS = ("3.9.1", "kafka.admin.ConfigCommand")


def run(tool: tuple[str, str], cluster: Cluster, arguments: str) -> str:
    release, name = tool
    words = [*short_java(fetched_or_skip(release)), name]
    asked = [*words, "--bootstrap-server", cluster.bootstrap, *arguments.split()]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


@pytest.mark.nightly("starts a JVM for each of ten commands; by day other clients administer topics")
def test_kafkas_tools_cannot_administer_topics(cluster: Cluster) -> None:
    configured = "--entity-type topics --entity-name tool"
    created = run(TOPICS, cluster, "--create --topic tool --partitions 1 --config cleanup.policy=compact")
    assert "Created topic tool." in created
    wait_until(lambda: "tool" in run(TOPICS, cluster, "--list").split(), "the topic to be listed")
    assert "Completed" in run(CONFIGS, cluster, f"--alter {configured} --add-config segment.ms=7000,flush.ms=3")
    assert "Completed" in run(CONFIGS, cluster, f"--alter {configured} --delete-config flush.ms")
    described = run(CONFIGS, cluster, f"--describe {configured}")
    assert "cleanup.policy=compact sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG" in described
    assert "segment.ms=7000" in described
    assert "flush.ms" not in described
    assert "Unknown topic config name: no.such" in run(CONFIGS, cluster, f"--alter {configured} --add-config no.such=1")
    run(TOPICS, cluster, "--alter --topic tool --partitions 3")
    wait_until(lambda: "PartitionCount: 3" in run(TOPICS, cluster, "--describe --topic tool"), "the partitions")
    run(TOPICS, cluster, "--delete --topic tool")
    wait_until(lambda: "tool" not in run(TOPICS, cluster, "--list").split(), "the topic to be gone")
    for broker in cluster.ids:
        assert not list((cluster.directory / f"data-{broker}").glob("tool-*"))
