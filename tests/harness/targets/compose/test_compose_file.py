"""What is read out of compose files as people write them, in the dialects of the common images."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from harness.errors import UsageError
from harness.model import CONTROLLER, NodeId
from harness.targets.compose.compose_file import Endpoint
from tests.harness.targets.compose.files import APACHE_COMBINED, BITNAMI, CONFLUENT_ZOOKEEPER, FILE, WURSTMEISTER, read


def refusal(text: str, pattern: str | None = None) -> str:
    with pytest.raises(UsageError) as refused:
        read(text, pattern)
    return str(refused.value)


def test_brokers_are_numbered_in_the_order_of_their_ids_not_of_the_file() -> None:
    file = read(APACHE_COMBINED)
    assert [broker.name for broker in file.brokers] == ["broker-1", "broker-2", "broker-3"]
    assert file.kafka_ids == {NodeId(0): 1, NodeId(1): 2, NodeId(2): 3}


def test_where_brokers_are_the_controllers_there_is_no_node_controller() -> None:
    file = read(APACHE_COMBINED)
    assert list(file.nodes) == ["0", "1", "2"]
    assert all(broker.is_controller for broker in file.brokers)


def test_what_only_uses_kafka_is_no_broker() -> None:
    names = {one.name for one in read(APACHE_COMBINED).kafkas}
    assert names == {"broker-1", "broker-2", "broker-3"}
    assert [one.name for one in read(CONFLUENT_ZOOKEEPER).kafkas] == ["broker"]


def test_settings_are_in_kafkas_own_spelling_and_yaml_booleans_in_javas() -> None:
    properties = read(APACHE_COMBINED).brokers[0].properties
    assert properties["offsets.topic.replication.factor"] == "1"
    assert properties["auto.create.topics.enable"] == "false"


def test_controllers_do_not_advertise_their_listener() -> None:
    told = read(APACHE_COMBINED).brokers[0].advertised
    assert told == [Endpoint("PLAINTEXT", "broker-1", 19092), Endpoint("PLAINTEXT_HOST", "localhost", 29092)]


def test_an_image_that_listens_where_it_advertises_is_understood() -> None:
    (broker,) = read(CONFLUENT_ZOOKEEPER).brokers
    assert broker.listeners == [Endpoint("PLAINTEXT", "", 29092), Endpoint("PLAINTEXT_INTERNAL", "", 9092)]


def test_zookeeper_is_the_node_controller() -> None:
    file = read(CONFLUENT_ZOOKEEPER)
    assert file.nodes == {"0": ["broker"], CONTROLLER: ["zookeeper"]}
    assert file.version == "2"


def test_bitnamis_dialect_is_read_and_kept() -> None:
    file = read(BITNAMI)
    assert file.nodes == {"0": ["kafka"], CONTROLLER: ["controller"]}
    (broker,) = file.brokers
    assert broker.kafka_id == 5
    assert broker.properties["min.insync.replicas"] == "2"
    assert broker.variable("log.dirs") == "KAFKA_CFG_LOG_DIRS"


def test_wurstmeisters_advertised_host_becomes_a_listener() -> None:
    file = read(WURSTMEISTER)
    (broker,) = file.brokers
    assert broker.advertised == [Endpoint("PLAINTEXT", "192.168.99.100", 9092)]
    assert broker.networks == ["back"]
    assert [one.name for one in file.zookeepers] == ["zk"], "found by the name of its container"


def test_where_wurstmeister_listens_is_not_where_it_is_published() -> None:
    text = WURSTMEISTER.replace("KAFKA_BROKER_ID: 7", "KAFKA_BROKER_ID: 7\n          KAFKA_ADVERTISED_PORT: 19092")
    (broker,) = read(text).brokers
    assert broker.listeners == [Endpoint("PLAINTEXT", "", 9092)]
    assert broker.advertised == [Endpoint("PLAINTEXT", "192.168.99.100", 19092)]


def test_a_pattern_says_who_is_a_broker_of_those_that_may_be_one() -> None:
    text = APACHE_COMBINED.replace("broker-3:\n", "node-3:\n").replace("ui:\n", "broker-ui:\n")
    assert [broker.name for broker in read(text, "broker-*").brokers] == ["broker-1", "broker-2"]


def test_who_has_an_id_that_is_none_may_be_left_out_by_a_pattern() -> None:
    with pytest.raises(UsageError) as raised:
        read(broker(KAFKA_NODE_ID="ignored"))
    assert "--service-pattern" in str(raised.value.remedy)


def broker(**environment: Any) -> str:
    told = {
        "KAFKA_NODE_ID": 1,
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    }
    kept = {key: value for key, value in {**told, **environment}.items() if value is not None}
    return yaml.safe_dump({"services": {"kafka": {"image": "apache/kafka:4.1.0", "environment": kept}}})


def test_the_protocol_of_a_controllers_listener_need_not_be_written() -> None:
    assert read(broker()).brokers[0].protocols == {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (broker(KAFKA_NODE_ID=None), "service 'kafka' has no KAFKA_NODE_ID"),
        (broker(KAFKA_NODE_ID="one"), "KAFKA_NODE_ID: 'one' is no broker id"),
        (broker(KAFKA_PROCESS_ROLES="broker,observer"), "KAFKA_PROCESS_ROLES: 'observer' is neither"),
        (broker(KAFKA_PROCESS_ROLES="broker"), "no service has the role controller"),
        (broker(KAFKA_LISTENERS="9092"), "KAFKA_LISTENERS: '9092' is not NAME://HOST:PORT"),
        (
            broker(KAFKA_PROCESS_ROLES=None, KAFKA_ZOOKEEPER_CONNECT="kafka:abc"),
            "KAFKA_ZOOKEEPER_CONNECT: 'abc' is no port",
        ),
        (
            broker(KAFKA_LISTENERS=None, KAFKA_ADVERTISED_HOST_NAME="kafka", KAFKA_PORT="tcp://10.0.0.1:9092"),
            "KAFKA_PORT: 'tcp://10.0.0.1:9092' is no port",
        ),
        (
            broker(KAFKA_LISTENERS=None, KAFKA_ADVERTISED_HOST_NAME="kafka", KAFKA_ADVERTISED_PORT=""),
            "KAFKA_ADVERTISED_PORT: '' is no port",
        ),
        (broker(KAFKA_LISTENERS="INTERNAL://:9092"), "has no protocol for INTERNAL"),
        (broker(KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="PLAINTEXT"), "'PLAINTEXT' is not LISTENER:PROTOCOL"),
        (
            broker(KAFKA_PROCESS_ROLES=None, KAFKA_ZOOKEEPER_CONNECT="zk.example:2181"),
            "KAFKA_ZOOKEEPER_CONNECT: 'zk.example:2181' is no service of this file",
        ),
        (
            broker(KAFKA_PROCESS_ROLES=None, KAFKA_ZOOKEEPER_CONNECT="kafka:2181/kafka"),
            "has a path",
        ),
        (broker(KAFKA_PROCESS_ROLES=None), "has neither KAFKA_PROCESS_ROLES nor zookeeper.connect"),
        ("services: {web: {image: nginx}}", "none of the services web is known for a Kafka broker"),
        (
            "services: {kafka: {image: apache/kafka, scale: 3, environment: {KAFKA_NODE_ID: 1}}}",
            "service 'kafka' is started 3 times",
        ),
        (
            "services: {kafka: {build: ., environment: {KAFKA_NODE_ID: 1, KAFKA_ZOOKEEPER_CONNECT: 'kafka:1'}}}",
            "service 'kafka' has no image",
        ),
        (
            "services: {kafka: {image: a, network_mode: host, environment: {KAFKA_NODE_ID: 1}}}",
            "service 'kafka' has network_mode 'host'",
        ),
        (
            "services: {a: &a {image: a, environment: {KAFKA_NODE_ID: 1}}, b: *a}",
            "services a and b have the same id 1",
        ),
    ],
)
def test_what_cannot_be_understood_is_refused_by_its_name(text: str, says: str) -> None:
    assert says in refusal(text)
    assert str(FILE) in refusal(text)


def test_a_pattern_that_matches_nothing_is_refused() -> None:
    assert "no service of kafka matches 'redpanda*'" in refusal(broker(), "redpanda*")
