"""What services are told by a server.properties that they mount."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.errors import UsageError
from harness.targets.compose.mounted import with_mounted_properties
from harness.targets.compose.refusals import refuse
from harness.targets.compose.rewriting import without_addresses
from tests.harness.targets.compose.files import read

PROPERTIES = r"""
# process.roles=broker
! node.id=9
process.roles = broker,controller
node.id={number}
controller.quorum.voters=1@172.29.7.1:9093,\
    2@172.29.7.2:9093,3@172.29.7.3:9093
listeners : PLAINTEXT://:9092,CONTROLLER://:9093
advertised.listeners=PLAINTEXT://172.29.7.{number}:9092
controller.listener.names=CONTROLLER
min.insync.replicas=1
sasl.jaas.config=secret
ssl.key.password=secret
zookeeper.ssl.client.enable=false
odd_name=1
"""


def stack(tmp_path: Path, target: str = "/mnt/shared/config", source: str = "{number}", **more: Any) -> dict[str, Any]:
    """Three brokers that mount a directory, or a file, of this machine."""
    services = {}
    for number in (1, 2, 3):
        (place := tmp_path / str(number)).mkdir(exist_ok=True)
        (place / "server.properties").write_text(PROPERTIES.replace("{number}", str(number)))
        volume = f"{tmp_path / source.format(number=number)}:{target}:ro"
        networks = {"kn": {"ipv4_address": f"172.29.7.{number}"}}
        services[f"broker-{number}"] = {"image": "apache/kafka", "volumes": [volume], "networks": networks, **more}
    return {"services": services}


@pytest.mark.parametrize(
    ("target", "source"),
    [
        ("/mnt/shared/config", "{number}"),
        ("/mnt/shared/config/server.properties", "{number}/server.properties"),
    ],
)
def test_a_mounted_file_says_who_is_a_broker_where_it_listens_and_who_votes(
    tmp_path: Path, target: str, source: str
) -> None:
    written = without_addresses(with_mounted_properties(stack(tmp_path, target, source)))
    file = read(yaml.safe_dump(dict(written)))
    refuse(file)
    assert [broker.kafka_id for broker in file.brokers] == [1, 2, 3]
    broker = file.brokers[1]
    assert broker.is_controller
    assert broker.properties["controller.quorum.voters"] == "1@broker-1:9093,2@broker-2:9093,3@broker-3:9093"
    assert [str(one) for one in broker.listeners] == ["PLAINTEXT://:9092", "CONTROLLER://:9093"]
    assert [str(one) for one in broker.advertised] == ["PLAINTEXT://broker-2:9092"]


def test_variables_count_for_more_and_secrets_stay_in_the_file(tmp_path: Path) -> None:
    made = with_mounted_properties(stack(tmp_path, environment={"KAFKA_MIN_INSYNC_REPLICAS": "2"}))
    environment = made["services"]["broker-1"]["environment"]
    assert environment["KAFKA_MIN_INSYNC_REPLICAS"] == "2"
    assert environment["KAFKA_ZOOKEEPER_SSL_CLIENT_ENABLE"] == "false"
    assert not any("SASL" in name or "PASSWORD" in name or "ODD" in name for name in environment)


def test_a_file_without_such_a_mount_stays_as_it_is(tmp_path: Path) -> None:
    for volume in ("data:/mnt/shared/config", f"{tmp_path}:/mnt/shared/config", f"{tmp_path}:/certs"):
        written = {"services": {"kafka": {"image": "apache/kafka", "volumes": [volume]}}}
        assert with_mounted_properties(written) == written


def test_a_mounted_file_beside_which_an_image_reads_no_variables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"service 'broker-1' mounts server\.properties at /bitnami/kafka/config"):
        with_mounted_properties(stack(tmp_path, "/bitnami/kafka/config"))


def test_a_mounted_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    written = stack(tmp_path)
    (tmp_path / "2" / "server.properties").unlink()
    os.mkfifo(tmp_path / "2" / "server.properties")
    with pytest.raises(UsageError, match=f"service 'broker-2' mounts {tmp_path}/2/server.properties, which cannot be"):
        with_mounted_properties(written)
