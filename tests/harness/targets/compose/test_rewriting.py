"""The file that Compose is given: what two runs would fight for is not in it."""

from __future__ import annotations

import json
from textwrap import dedent
from typing import Any

import pytest
import yaml

from harness.errors import UsageError
from harness.targets.compose.overlay import needed
from harness.targets.compose.refusals import refuse
from harness.targets.compose.rewriting import kept, rewritten, without_addresses
from tests.harness.targets.compose.files import read
from tests.harness.targets.compose.test_overlay import made

STACK = """
    name: mine
    services:
      zk: {image: zookeeper, restart: always, ports: ["2181:2181"], profiles: [kafka]}
      kafka:
        image: kafka
        container_name: first
        hostname: broker.example.org
        restart: always
        deploy: {restart_policy: {condition: on-failure}, resources: {limits: {cpus: 1}}}
        depends_on: {setup: {condition: service_completed_successfully}}
        environment: {KAFKA_BROKER_ID: 1, KAFKA_ZOOKEEPER_CONNECT: "zk:2181", SECRET: "a$b"}
        labels: {mine: "yes"}
        ports: ["9092:9092", {target: 9093, published: "9093", host_ip: 0.0.0.0}]
        expose: ["9999"]
        networks: {back: {aliases: [first-of-all]}, front: null}
        volumes: ["/srv/certs:/certs", "elsewhere:/keys", "/cache"]
        secrets: [password]
      setup: {image: busybox, container_name: setup, networks: [back]}
      ui: {image: ui, ports: ["8080:8080"], networks: [hidden]}
    networks:
      back: {name: company, ipam: {config: [{subnet: 172.29.7.0/24}]}, driver: bridge}
      front: {external: true, name: proxy}
      hidden: {}
    volumes: {elsewhere: {external: true, name: vault}, data: {}}
    secrets: {password: {file: /srv/password}}
"""

FIXED = """
    services:
      kafka-1:
        image: kafka
        networks: {kn: {ipv4_address: 172.29.7.1, aliases: [one]}}
        extra_hosts: ["two:172.29.7.11", "elsewhere=10.0.0.1"]
        healthcheck: {test: [CMD, ask, "172.29.7.1:9092"]}
        environment:
          KAFKA_NODE_ID: 1
          KAFKA_PROCESS_ROLES: broker,controller
          KAFKA_CONTROLLER_QUORUM_VOTERS: 1@172.29.7.1:9093,2@172.29.7.11:9093
          KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
          KAFKA_LISTENERS: PLAINTEXT://172.29.7.1:9092,CONTROLLER://:9093
      kafka-2:
        image: kafka
        networks: {kn: {ipv4_address: 172.29.7.11}}
        environment:
          KAFKA_NODE_ID: 2
          KAFKA_PROCESS_ROLES: broker,controller
          KAFKA_CONTROLLER_QUORUM_VOTERS: 1@172.29.7.1:9093,2@172.29.7.11:9093
          KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
          KAFKA_LISTENERS: PLAINTEXT://172.29.7.11:9092,CONTROLLER://:9093
          UNTOUCHED: 172.29.7.112 and 1172.29.7.11
    networks: {kn: {ipam: {config: [{subnet: 172.29.7.0/24}]}}}
"""


def given(text: str = STACK, version: str = "2.8.1") -> dict[str, Any]:
    """What Compose is given for this file."""
    stack = without_addresses(yaml.safe_load(dedent(text)))
    file = read(yaml.safe_dump(dict(stack)))
    names = kept(stack, needed(file))
    return rewritten(stack, made(file, version), names, "seawall-1")


def test_nothing_is_published_but_on_loopback() -> None:
    ports = [port for service in given()["services"].values() for port in service.get("ports", ())]
    assert len(ports) == 5
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_containers_have_names_of_the_run_and_what_the_file_calls_them_stays_a_name_on_their_networks() -> None:
    services = given()["services"]
    assert {name: one["container_name"] for name, one in services.items()} == {
        name: f"seawall-1-{name}" for name in ("zk", "kafka", "setup", "seawall-holder", "seawall-toxiproxy")
    }
    called = ["broker.example.org", "first"]
    assert services["kafka"]["networks"] == {
        "back": {"aliases": [*called, "first-of-all"]},
        "front": {"aliases": called},
    }
    assert services["setup"]["networks"] == {"back": {"aliases": ["setup"]}}
    assert services["zk"]["networks"] == {"default": {}}
    assert "networks" not in services["seawall-holder"]


def test_networks_are_the_runs_own_without_names_and_addresses() -> None:
    assert given()["networks"] == {"back": {"driver": "bridge"}, "default": {}, "front": {}}


def test_only_the_volumes_that_are_mounted_are_there() -> None:
    assert set(given()["volumes"]) == {"seawall-kafka", "elsewhere"}


def test_what_is_neither_a_node_nor_needed_by_one_is_left_out_and_the_rest_of_the_file_stays() -> None:
    file = given()
    assert "ui" not in file["services"]
    kafka = file["services"]["kafka"]
    assert kafka["environment"]["SECRET"] == "a$b"
    assert kafka["expose"] == ["9999"]
    assert kafka["deploy"] == {"resources": {"limits": {"cpus": 1}}}
    assert kafka["depends_on"] == {"setup": {"condition": "service_completed_successfully"}}
    assert file["secrets"] == {"password": {"file": "/srv/password"}}
    assert "profiles" not in file["services"]["zk"]
    assert "name" not in file


def test_nobody_starts_a_killed_broker_but_seawall() -> None:
    assert [given()["services"][name]["restart"] for name in ("kafka", "zk")] == ["no", "no"]


def test_everything_says_whose_it_is() -> None:
    services = given()["services"]
    assert services["kafka"]["labels"] == {"mine": "yes", "seawall.run": "seawall-1", "seawall.owner": "me"}
    assert all(one["labels"]["seawall.owner"] == "me" for one in services.values())


def test_a_mount_of_the_file_gives_way_to_the_one_of_the_run_at_its_place() -> None:
    volumes = given()["services"]["kafka"]["volumes"]
    assert volumes == [
        "/cache",
        "seawall-kafka:/seawall/disk",
        {"type": "bind", "source": "/srv/certs", "target": "/certs", "read_only": True},
        {"type": "volume", "source": "elsewhere", "target": "/keys", "read_only": True},
    ]


def test_fixed_addresses_become_the_names_of_their_services() -> None:
    file = given(FIXED, "4.1.0")
    one, two = file["services"]["kafka-1"], file["services"]["kafka-2"]
    assert one["environment"]["KAFKA_CONTROLLER_QUORUM_VOTERS"] == "1@kafka-1:9093,2@kafka-2:9093"
    assert one["environment"]["KAFKA_ADVERTISED_LISTENERS"].startswith("PLAINTEXT://kafka-1:9092,")
    assert one["healthcheck"]["test"][-1] == "kafka-1:9092"
    assert one["extra_hosts"] == ["elsewhere:10.0.0.1"]
    assert one["networks"] == {"kn": {"aliases": ["one"]}}
    assert two["environment"]["UNTOUCHED"] == "172.29.7.112 and 1172.29.7.11"
    assert file["networks"] == {"kn": {}}
    refuse(read(json.dumps(without_addresses(yaml.safe_load(dedent(FIXED))))))


@pytest.mark.parametrize("mode", ["host", "container:other"])
def test_a_service_that_would_publish_its_ports_past_the_run_is_refused(mode: str) -> None:
    stack = yaml.safe_load(dedent(STACK))
    stack["services"]["setup"]["network_mode"] = mode
    with pytest.raises(UsageError, match=f"service 'setup' has network_mode '{mode}'"):
        kept(stack, ["kafka"])
    assert kept(stack, ["ui"]) == ["ui"]
