"""What services of a user's compose file could write to, and what they are given instead."""

from __future__ import annotations

from typing import Any

import pytest

from harness.targets.compose.mounts import Mount, Source, mounts
from tests.harness.targets.compose.files import read
from tests.harness.targets.compose.test_overlay import made

FILE = """
    services:
      kafka1:
        image: kafka
        environment: {{KAFKA_BROKER_ID: 1, KAFKA_ZOOKEEPER_CONNECT: "zk:2181", KAFKA_LOG_DIRS: /big/logs}}
        volumes: {volumes}
      zk:
        image: zookeeper
        volumes: ["/srv/zk:/data", "/srv/zk-log:/datalog", "/srv/zoo.cfg:/conf/zoo.cfg"]
      setup:
        image: busybox
        volumes: ["prod:/out", "/srv/setup:/setup"]
    volumes:
      prod: {{name: prod-kafka-data-1}}
      elsewhere: {{external: true}}
"""


def instead(volumes: str) -> list[Any]:
    """What broker 1 has mounted beside what seawall adds to every broker."""
    file = made(read(FILE.format(volumes=volumes)), "2.8.1")
    return [one for one in file["services"]["kafka1"]["volumes"] if one != "seawall-kafka1:/seawall/disk"]


def test_a_volume_of_the_file_is_replaced_for_all_that_share_it_whatever_its_name_is() -> None:
    file = made(read(FILE.format(volumes='["prod:/in:ro"]')), "2.8.1")
    assert "seawall-of-file-prod:/in:ro" in file["services"]["kafka1"]["volumes"]
    assert "seawall-of-file-prod:/out" in file["services"]["setup"]["volumes"]
    assert file["volumes"]["seawall-of-file-prod"] == {"labels": {"seawall.run": "seawall-1", "seawall.owner": "me"}}


@pytest.mark.parametrize("target", ["/var/lib/kafka/data", "/var/lib/kafka", "/var/lib", "/big/logs", "/big"])
def test_where_kafka_keeps_its_data_there_is_an_empty_volume(target: str) -> None:
    assert instead(f'["/srv/kafka1:{target}"]') == [f"seawall-for-kafka1-0:{target}"]
    assert instead(f'["elsewhere:{target}"]') == [f"seawall-for-kafka1-0:{target}"]


def test_other_directories_and_external_volumes_are_read_only() -> None:
    assert instead('["/srv/certs:/certs", "elsewhere:/keys", "/srv/jmx:/jmx:ro"]') == [
        {"type": "bind", "source": "/srv/certs", "target": "/certs", "read_only": True},
        {"type": "volume", "source": "elsewhere", "target": "/keys", "read_only": True},
    ]
    setup = made(read(FILE.format(volumes="[]")), "2.8.1")["services"]["setup"]
    assert setup["volumes"][1] == {"type": "bind", "source": "/srv/setup", "target": "/setup", "read_only": True}


def test_what_zookeeper_writes_goes_to_the_run_alone() -> None:
    volumes = made(read(FILE.format(volumes="[]")), "2.8.1")["services"]["zk"]["volumes"]
    assert [one if isinstance(one, str) else (one["source"], one["target"]) for one in volumes] == [
        ("/run/zk/metadata/snapshots", "/seawall/metadata/snapshots"),
        ("/run/zk/metadata/transactions", "/seawall/metadata/transactions"),
        "seawall-for-zk-0:/data",
        "seawall-for-zk-1:/datalog",
        ("/srv/zoo.cfg", "/conf/zoo.cfg"),
    ]


def test_both_spellings_of_a_mount_are_read() -> None:
    long = [
        {"type": "bind", "source": "/srv/a", "target": "/a", "bind": {"create_host_path": True}},
        {"type": "volume", "source": "prod", "target": "/b", "read_only": True},
        {"type": "volume", "target": "/c"},
        {"type": "tmpfs", "target": "/d"},
    ]
    short = ["/srv/a:/a:rw", "prod:/b:ro", "/c"]
    for written in (long, short):
        assert mounts({"services": {"kafka": {"volumes": written}}}) == {
            "kafka": [Mount(Source.DIRECTORY, "/srv/a", "/a", False), Mount(Source.VOLUME, "prod", "/b", True)]
        }
