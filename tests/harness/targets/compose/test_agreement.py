"""Services of a compose file that differ in a setting are not silently made alike."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.targets.compose.agreement import agreed
from tests.harness.targets.compose.files import BITNAMI, read

THREE = """
    services:
      kafka1: &kafka
        image: apache/kafka:4.1.0
        environment: &environment
          KAFKA_NODE_ID: 1
          KAFKA_PROCESS_ROLES: "broker,controller"
          KAFKA_LISTENERS: "PLAINTEXT://:9092,CONTROLLER://:9093"
          KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
          KAFKA_MIN_INSYNC_REPLICAS: 2
      kafka2:
        <<: *kafka
        environment: {<<: *environment, KAFKA_NODE_ID: 2}
      kafka3:
        <<: *kafka
        environment: {<<: *environment, KAFKA_NODE_ID: 3}
"""
MIN_ISR, SEGMENT = "min.insync.replicas", "log.segment.bytes"


def second(written: str) -> str:
    """The file with this among the variables of the second broker."""
    return THREE.replace("KAFKA_NODE_ID: 2", f"KAFKA_NODE_ID: 2, {written}")


def test_what_all_services_set_is_what_the_file_sets() -> None:
    assert agreed(read(THREE), [MIN_ISR, SEGMENT]) == {MIN_ISR: "2"}


def test_brokers_that_differ_are_refused_with_what_each_of_them_says() -> None:
    with pytest.raises(UsageError, match=r"differ in min\.insync\.replicas: 2 \(kafka1, kafka3\), 1 \(kafka2\);"):
        agreed(read(second("KAFKA_MIN_INSYNC_REPLICAS: 1")), [MIN_ISR])


def test_a_broker_that_does_not_set_what_the_others_set_differs_from_them() -> None:
    with pytest.raises(UsageError, match=r"not set \(kafka1, kafka3\), 1048576 \(kafka2\)"):
        agreed(read(second("KAFKA_LOG_SEGMENT_BYTES: 1048576")), [SEGMENT])


def test_what_is_not_asked_for_may_differ() -> None:
    assert agreed(read(second("KAFKA_MIN_INSYNC_REPLICAS: 1")), [SEGMENT]) == {}


def test_a_controller_may_leave_to_the_brokers_what_they_set_and_set_what_they_do_not() -> None:
    role = "- KAFKA_CFG_PROCESS_ROLES=controller"
    unclean = BITNAMI.replace(role, f"{role}\n          - KAFKA_CFG_UNCLEAN_LEADER_ELECTION_ENABLE=true")
    found = agreed(read(unclean), [MIN_ISR, "unclean.leader.election.enable"])
    assert found == {MIN_ISR: "2", "unclean.leader.election.enable": "true"}
    with pytest.raises(UsageError, match=r"2 \(kafka\), 1 \(controller\)"):
        agreed(read(BITNAMI.replace(role, f"{role}\n          - KAFKA_CFG_MIN_INSYNC_REPLICAS=1")), [MIN_ISR])
