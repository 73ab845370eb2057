"""What is added to a user's compose file."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import UsageError
from harness.targets.compose.beside import Addition, Ports, Surroundings
from harness.targets.compose.compose_file import ComposeFile
from harness.targets.compose.overlay import Wishes, needed, overlay
from harness.targets.compose.project import TOXIPROXY
from harness.targets.kafka.releases import release
from harness.targets.kafka.server_properties import understood
from tests.harness.targets.compose.files import APACHE_COMBINED, BITNAMI, CONFLUENT_ZOOKEEPER, WURSTMEISTER, read


def made(
    file: ComposeFile, version: str = "4.1.0", *, is_relayed: bool = False, **clocks: Addition
) -> dict[str, Any]:  # fmt: skip
    nodes = [str(number) for number in range(len(file.brokers))]
    kept = [one.name for one in file.zookeepers] or [one.name for one in file.kafkas]
    run = Surroundings(
        project="seawall-1",
        owner="me",
        ports=Ports(
            clients={node: 21000 + int(node) for node in nodes},
            advertised={node: (26000 if is_relayed else 21000) + int(node) for node in nodes},
            harness={node: 22000 + int(node) for node in nodes},
            toxiproxy=23000,
            probe=24000,
            controller=25000,
        ),
        clocks=clocks,
        tools_image="tools",
        toxiproxy_image="toxiproxy",
        disk_mib=64,
    )
    settings = understood({"min.insync.replicas": 2}, release(version), 3)
    return overlay(file, Wishes(run, settings, {service: f"/run/{service}/metadata" for service in kept}))


def test_clients_are_led_past_the_relays_that_have_a_tap_or_toxiproxy_is_not_where_these_lead() -> None:
    services = made(read(APACHE_COMBINED), is_relayed=True)["services"]
    brokers = [one for name, one in services.items() if not name.startswith("seawall-")]
    advertised = [one["environment"]["KAFKA_ADVERTISED_LISTENERS"] for one in brokers]
    assert all(f"SEAWALL_CLIENTS://127.0.0.1:2600{number}" in one for number, one in enumerate(advertised))
    assert "127.0.0.1:21000:20000" in services[TOXIPROXY]["ports"]


def test_brokers_keep_their_own_listeners_and_get_one_for_clients_and_one_for_the_harness() -> None:
    environment = made(read(APACHE_COMBINED))["services"]["broker-2"]["environment"]
    assert environment["KAFKA_LISTENERS"] == (
        "PLAINTEXT://:19092,CONTROLLER://:9093,PLAINTEXT_HOST://:9092,SEAWALL_CLIENTS://:19094,SEAWALL_HARNESS://:19095"
    )
    assert environment["KAFKA_ADVERTISED_LISTENERS"] == (
        "PLAINTEXT://broker-2:19092,PLAINTEXT_HOST://localhost:39092,"
        "SEAWALL_CLIENTS://127.0.0.1:21001,SEAWALL_HARNESS://127.0.0.1:22001"
    )
    assert environment["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].endswith(
        "SEAWALL_CLIENTS:PLAINTEXT,SEAWALL_HARNESS:PLAINTEXT"
    )


def test_whatever_is_published_is_published_on_loopback_alone() -> None:
    for text in (APACHE_COMBINED, CONFLUENT_ZOOKEEPER, BITNAMI, WURSTMEISTER):
        services = made(read(text))["services"].values()
        ports = [port for service in services for port in service.get("ports", ())]
        assert ports
        assert all(port.startswith("127.0.0.1:") for port in ports)


def test_whatever_is_touched_or_added_says_whose_it_is() -> None:
    for text in (APACHE_COMBINED, CONFLUENT_ZOOKEEPER, BITNAMI, WURSTMEISTER):
        overlaid = made(read(text))
        things = [*overlaid["services"].values(), *overlaid["volumes"].values()]
        assert all(one["labels"] == {"seawall.run": "seawall-1", "seawall.owner": "me"} for one in things)


def test_settings_are_written_in_the_dialect_of_the_image() -> None:
    assert made(read(BITNAMI))["services"]["kafka"]["environment"]["KAFKA_CFG_MIN_INSYNC_REPLICAS"] == "2"
    assert made(read(APACHE_COMBINED))["services"]["broker-1"]["environment"]["KAFKA_MIN_INSYNC_REPLICAS"] == "2"


def test_controllers_get_the_settings_too_for_sessions_are_theirs_to_end() -> None:
    environment = made(read(BITNAMI))["services"]["controller"]["environment"]
    assert environment["KAFKA_CFG_BROKER_SESSION_TIMEOUT_MS"] == "3000"


def test_a_brokers_volume_has_a_size_and_a_second_container_that_holds_it() -> None:
    file = made(read(BITNAMI))
    assert file["volumes"]["seawall-kafka"]["driver_opts"] == {
        "type": "tmpfs",
        "device": "tmpfs",
        "o": "size=64m,mode=1777",
    }
    assert "seawall-kafka:/seawall/disk" in file["services"]["kafka"]["volumes"]
    assert "seawall-kafka:/volumes/kafka" in file["services"]["seawall-holder"]["volumes"]
    assert file["services"]["kafka"]["environment"]["KAFKA_CFG_LOG_DIRS"] == "/seawall/disk/data"


@pytest.mark.parametrize(
    ("text", "name", "prefix"), [(APACHE_COMBINED, "broker-1", "KAFKA"), (BITNAMI, "kafka", "KAFKA_CFG")]
)
def test_a_brokers_metadata_log_is_kept_apart_from_the_disk_that_may_be_full(text: str, name: str, prefix: str) -> None:
    service = made(read(text))["services"][name]
    assert service["environment"][f"{prefix}_METADATA_LOG_DIR"] == "/seawall/metadata"
    bind = {"type": "bind", "source": f"/run/{name}/metadata", "target": "/seawall/metadata"}
    assert bind in service["volumes"]


def test_a_controller_that_is_alone_can_be_asked_and_several_cannot() -> None:
    assert made(read(BITNAMI))["services"]["controller"]["ports"] == ["127.0.0.1:25000:9093"]
    assert made(read(APACHE_COMBINED))["services"]["broker-1"]["ports"] == ["127.0.0.1:22000:19095"]


@pytest.mark.parametrize(
    ("text", "service", "where"),
    [
        (CONFLUENT_ZOOKEEPER, "zookeeper", "/var/lib/zookeeper/log"),
        (WURSTMEISTER, "zk", "/seawall/metadata/transactions"),
    ],
)
def test_zookeepers_log_is_written_where_it_can_be_read(text: str, service: str, where: str) -> None:
    added = made(read(text), "2.8.1")["services"][service]
    bind = {"type": "bind", "source": f"/run/{service}/metadata/transactions", "target": where}
    assert bind in added["volumes"]
    assert added["ports"] == ["127.0.0.1:25000:2181"]


def test_nobody_starts_a_killed_broker_but_seawall() -> None:
    assert {service["restart"] for service in made(read(APACHE_COMBINED))["services"].values()} == {"no"}


def test_the_clock_shim_is_added_where_it_can_be_loaded() -> None:
    addition = Addition({"LD_PRELOAD": "/seawall/shim/shim.so"}, ["/run/shim:/seawall/shim"])
    service = made(read(BITNAMI), kafka=addition)["services"]["kafka"]
    assert service["environment"]["LD_PRELOAD"] == "/seawall/shim/shim.so"
    assert "/run/shim:/seawall/shim" in service["volumes"]


def test_an_overlay_has_the_version_of_its_file_which_old_tools_insist_on() -> None:
    assert made(read(CONFLUENT_ZOOKEEPER), "2.8.1")["version"] == "2"
    assert "version" not in made(read(APACHE_COMBINED))


def test_nodes_are_the_services_that_run_kafka_and_zookeeper() -> None:
    assert needed(read(CONFLUENT_ZOOKEEPER)) == ["broker", "zookeeper"]


def test_a_port_that_seawall_needs_for_itself_is_refused() -> None:
    text = BITNAMI.replace("PLAINTEXT://:9092", "PLAINTEXT://:19094")
    with pytest.raises(UsageError, match="service 'kafka' listens at port 19094"):
        made(read(text))
