"""What of a compose file is refused because something would be told of it that is not so."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.targets.compose.refusals import refuse, refuse_metadata
from harness.targets.kafka.releases import release
from tests.harness.targets.compose.files import APACHE_COMBINED, BITNAMI, CONFLUENT_ZOOKEEPER, WURSTMEISTER, read

TWO_OLD = """
    services:
      zk: {image: zookeeper}
      kafka1: &kafka
        image: wurstmeister/kafka:2.13-2.8.1
        environment: {KAFKA_BROKER_ID: 1, KAFKA_ADVERTISED_HOST_NAME: somewhere, KAFKA_ZOOKEEPER_CONNECT: "zk:2181"}
      kafka2:
        <<: *kafka
        environment: {KAFKA_BROKER_ID: 2, KAFKA_ADVERTISED_HOST_NAME: kafka2, KAFKA_ZOOKEEPER_CONNECT: "zk:2181"}
"""


@pytest.mark.parametrize("text", [APACHE_COMBINED, BITNAMI, CONFLUENT_ZOOKEEPER, WURSTMEISTER])
def test_files_as_people_write_them_are_not_refused(text: str) -> None:
    refuse(read(text))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(
            TWO_OLD.replace("somewhere", "192.168.99.100"),
            "'kafka1' is advertised to its peers as '192.168.99.100', which is no name of its container",
            id="brokers that reach each other over published ports",
        ),
        pytest.param(
            APACHE_COMBINED.replace("PLAINTEXT://broker-3:19092", "PLAINTEXT://toxiproxy:19092"),
            "'broker-3' is advertised to its peers as 'toxiproxy'",
            id="brokers that reach each other through a proxy of the file",
        ),
        pytest.param(
            APACHE_COMBINED.replace("PLAINTEXT://broker-3:19092", "PLAINTEXT://broker-2:19092"),
            "'broker-3' is advertised to its peers as 'broker-2'",
            id="a broker under another one's name",
        ),
        pytest.param(
            TWO_OLD.replace(
                "KAFKA_BROKER_ID: 1, KAFKA_ADVERTISED_HOST_NAME: somewhere",
                'KAFKA_BROKER_ID: 1, KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: "PLAINTEXT:PLAINTEXT,ORDERS:PLAINTEXT", '
                'KAFKA_ADVERTISED_LISTENERS: "PLAINTEXT://kafka1:9092,ORDERS://10.0.0.7:9093", '
                "KAFKA_CONTROL_PLANE_LISTENER_NAME: ORDERS",
            ),
            "'kafka1' is advertised to its peers as '10.0.0.7'",
            id="a controller that orders another way",
        ),
        pytest.param(
            APACHE_COMBINED.replace("hostname: broker-1", 'extra_hosts: ["broker-2:10.0.0.7", "db=10.0.0.8"]'),
            "'broker-1' has 'broker-2', a name of a node, in extra_hosts",
            id="a peer that is called elsewhere",
        ),
        pytest.param(
            TWO_OLD.replace("somewhere", "kafka1") + "        extra_hosts: {zk: 10.0.0.7}",
            "'kafka2' has 'zk', a name of a node, in extra_hosts",
            id="a ZooKeeper that is called elsewhere",
        ),
        pytest.param(
            APACHE_COMBINED.replace("2@broker-2:9093", "2@toxiproxy:9093"),
            "finds a controller at 'toxiproxy', which is no name of a controller's container",
            id="controllers behind a proxy of the file",
        ),
        pytest.param(
            APACHE_COMBINED.replace("KAFKA_LOG_DIRS", "KAFKA_AUTHORIZER_CLASS_NAME: a.b.C\n          KAFKA_LOG_DIRS"),
            "'broker-1' has an authorizer, which does not let User:ANONYMOUS",
            id="an authorizer that does not know seawall",
        ),
        pytest.param(
            WURSTMEISTER + "    networks: {back: {internal: true}}",
            "'kafka' is on internal networks alone",
            id="networks from which nothing can be published",
        ),
    ],
)
def test_what_would_lie_is_refused_by_its_name(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        refuse(read(text))


def test_an_authorizer_that_lets_everybody_in_is_none_to_seawall() -> None:
    for lenient in ("KAFKA_ALLOW_EVERYONE_IF_NO_ACL_FOUND: true", "KAFKA_SUPER_USERS: User:admin;User:ANONYMOUS"):
        added = f"KAFKA_AUTHORIZER_CLASS_NAME: a.b.C\n          {lenient}\n          KAFKA_LOG_DIRS"
        refuse(read(APACHE_COMBINED.replace("KAFKA_LOG_DIRS", added)))


def test_a_name_that_is_given_on_a_network_is_a_brokers_own() -> None:
    network = "networks: {default: {aliases: [first]}}\n        hostname: broker-1"
    text = APACHE_COMBINED.replace("hostname: broker-1", network)
    refuse(read(text.replace("PLAINTEXT://broker-1:19092", "PLAINTEXT://first:19092")))


def test_other_hosts_that_are_no_nodes_may_be_named() -> None:
    refuse(read(APACHE_COMBINED.replace("hostname: broker-1", 'extra_hosts: ["host.docker.internal:host-gateway"]')))


@pytest.mark.parametrize(
    ("text", "version", "says"),
    [
        (
            CONFLUENT_ZOOKEEPER,
            "3.9.0",
            r"Kafka 3\.9\.0 runs with ZooKeeper, but releases from 3\.3 on are known with KR",
        ),
        (BITNAMI, "3.2.0", r"Kafka 3\.2\.0 runs with KRaft, but releases before 3\.3 are known with ZooKeeper"),
    ],
)
def test_a_release_whose_state_another_keeps_in_the_file_is_refused(text: str, version: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        refuse_metadata(read(text), release(version))


def test_a_release_whose_state_is_kept_as_the_file_says_is_not_refused() -> None:
    refuse_metadata(read(CONFLUENT_ZOOKEEPER), release("2.8.1"))
    refuse_metadata(read(BITNAMI), release("3.9.1"))
