from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.model import CLIENTS, CONTROLLER
from harness.targets.kafka.layout import Control, Layout, Listener
from harness.targets.kafka.releases import Metadata, release
from harness.targets.kafka.server_properties import server_properties, understood, zookeeper_properties
from harness.targets.kafka.setting_names import may_be_written

OLD, NEW = release("0.10.2.2"), release("4.1.0")


def properties(
    version: str, node: str = "0", written: Mapping[str, object] = {}, control: Control = Control.ONE
) -> tuple[Layout, dict[str, str]]:
    wanted = release(version)
    layout = Layout.claim(3, wanted.metadata, control)
    layout.release()
    text = server_properties(layout, understood(written, wanted, 3), node, Path("/disk/data"))
    return layout, dict(line.split("=", 1) for line in text.splitlines())


def test_settings_are_handed_on_as_they_are_written() -> None:
    for version in ("0.10.2.2", "4.1.0"):
        written = {"min.insync.replicas": 2, "unclean.leader.election.enable": True, "log.index.interval.bytes": 1}
        _, lines = properties(version, written=written)
        assert [lines[name] for name in written] == ["2", "true", "1"]


def test_a_session_is_zookeepers_where_there_is_one() -> None:
    written = {"broker.session.timeout.ms": 2500, "broker.heartbeat.interval.ms": 200}
    _, old = properties("0.10.2.2", written=written)
    _, new = properties("4.1.0", written=written)
    assert old["zookeeper.session.timeout.ms"] == new["broker.session.timeout.ms"] == "2500"
    assert not {"broker.session.timeout.ms", "broker.heartbeat.interval.ms"} & old.keys()
    assert new["broker.heartbeat.interval.ms"] == "200"
    assert understood({"zookeeper.session.timeout.ms": 700}, OLD, 3).session_timeout_ms == 700


def test_log_directories_are_counted_by_the_scenario_and_named_for_kafka() -> None:
    assert properties("4.1.0")[1]["log.dirs"] == "/disk/data"
    assert properties("4.1.0", written={"log.dirs.count": 2})[1]["log.dirs"] == "/disk/data/log-0,/disk/data/log-1"
    with pytest.raises(UsageError, match=r"log\.dirs\.count: '0' is not 1 to 16"):
        understood({"log.dirs.count": 0}, NEW, 3)


@pytest.mark.parametrize(
    ("version", "name", "why"),
    [
        ("4.1.0", "min.insync.replica", "did you mean 'min.insync.replicas'"),
        ("0.10.2.2", "log.message.timestamp.after.max.ms", "came with 3.6.0"),
        ("3.3.2", "producer.id.expiration.ms", "came with 3.4.0"),
        ("4.1.0", "log.message.format.version", "gone since 4.0.0"),
        ("0.10.2.2", "transaction.state.log.min.isr", "came with 0.11.0.0"),
        ("4.1.0", "zookeeper.session.timeout.ms", "has no ZooKeeper"),
    ],
)
def test_a_setting_that_the_release_does_not_know_is_refused(version: str, name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        understood({name: 1}, release(version), 3)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("listeners", "seawall decides where nodes are"),
        ("broker.id", "seawall decides where nodes are"),
        ("listener.security.protocol.map", "seawall decides where nodes are"),
        ("log.dirs", "log.dirs.count is the number"),
        ("metadata.log.segment.bytes", "seawall decides where logs and metadata are"),
        ("sasl.enabled.mechanisms", "plain text"),
    ],
)
def test_what_the_harness_decides_is_not_for_a_scenario(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"{name!r} is not for a scenario: .*{why}"):
        understood({name: 1}, NEW, 3)
    assert name not in may_be_written(NEW)


def test_compaction_is_refused() -> None:
    with pytest.raises(UsageError, match=r"log\.cleanup\.policy: 'compact,delete': what is compacted is gone"):
        understood({"log.cleanup.policy": "compact,delete"}, NEW, 3)
    assert understood({"log.cleanup.policy": "delete"}, NEW, 3).properties["log.cleanup.policy"] == "delete"


@pytest.mark.parametrize("version", ["0.10.2.2", "2.8.1", "4.1.0"])
def test_nothing_that_a_scenario_may_write_is_written_over(version: str) -> None:
    names = may_be_written(release(version)) - {"log.dirs.count", "log.cleanup.policy"}
    if release(version).metadata is Metadata.ZOOKEEPER:
        names -= {"broker.session.timeout.ms", "broker.heartbeat.interval.ms"}  # ZooKeeper's are called otherwise
    _, lines = properties(version, written=dict.fromkeys(names, 1_234_567))
    assert {name: lines[name] for name in names} == dict.fromkeys(names, "1234567")


def test_a_parked_fetch_does_not_time_out() -> None:
    settings = understood({"replica.fetch.wait.max.ms": 6000}, OLD, 3)
    assert int(settings.properties["request.timeout.ms"]) > 6000


def test_peers_are_told_a_name_clients_a_proxy_and_the_harness_the_truth() -> None:
    for version in ("0.10.2.2", "4.1.0"):
        layout, lines = properties(version, "1")
        told = dict(word.split("://") for word in lines["advertised.listeners"].split(","))
        assert told["PEERS"] == f"broker-1:{layout.port_of('1', Listener.PEERS)}"
        assert told["CLIENTS"] == "{}:{}".format(*layout.seen_by(CLIENTS, "1", Listener.CLIENTS))
        assert told["HARNESS"] == "{}:{}".format(*layout.real("1", Listener.HARNESS))


def test_the_controller_is_a_broker_with_zookeeper_and_none_with_kraft() -> None:
    _, old = properties("2.8.1", CONTROLLER)
    _, new = properties("3.9.1", CONTROLLER)
    assert (old["broker.id"], new["node.id"], new["process.roles"]) == ("100", "100", "controller")
    assert new["log.dirs"] == new["metadata.log.dir"] == "/disk/data"
    assert properties("3.9.1")[1]["metadata.log.dir"] == "/disk/metadata"


def test_three_controllers_are_voters_whom_everybody_finds_by_name() -> None:
    layout, lines = properties("4.1.0", "controller-2", control=Control.QUORUM)
    ports = {name: layout.port_of(name, Listener.CONTROLLER) for name in layout.controllers}
    voters = ",".join(f"{100 + number}@controller-{number}:{ports[f'controller-{number}']}" for number in (1, 2, 3))
    assert (lines["node.id"], lines["process.roles"]) == ("102", "controller")
    assert lines["controller.quorum.voters"] == voters
    broker = properties("4.1.0", "1", control=Control.QUORUM)[1]
    assert (broker["node.id"], broker["process.roles"]) == ("1", "broker")
    assert broker["controller.quorum.voters"].startswith("101@controller-1:")


def test_a_combined_node_is_both_and_votes() -> None:
    layout, lines = properties("3.9.1", "1", control=Control.COMBINED)
    assert lines["process.roles"] == "broker,controller"
    assert [voter.split(":")[0] for voter in lines["controller.quorum.voters"].split(",")] == [
        "0@broker-0", "1@broker-1", "2@broker-2",
    ]  # fmt: skip
    assert f"CONTROLLER://{layout.host('1')}:{layout.port_of('1', Listener.CONTROLLER)}" in lines["listeners"]
    assert (lines["log.dirs"], lines["metadata.log.dir"]) == ("/disk/data", "/disk/metadata")


@pytest.mark.parametrize(("control", "node"), [(Control.ONE, CONTROLLER), (Control.COMBINED, "1")])
def test_a_controller_tells_a_name_where_it_tells_anything_so_that_nobody_passes_the_proxies(
    control: Control, node: str
) -> None:
    for version in ("3.9.1", "4.1.0"):
        layout, lines = properties(version, node, control=control)
        told = dict(word.split("://") for word in lines["advertised.listeners"].split(","))
        assert told["CONTROLLER"] == f"{layout.hostname(node)}:{layout.port_of(node, Listener.CONTROLLER)}"
    assert "CONTROLLER" not in properties("3.8.0", node, control=control)[1].get("advertised.listeners", "")


def test_zookeeper_listens_where_the_brokers_are_led() -> None:
    layout, lines = properties("2.8.1")
    port = layout.port_of(CONTROLLER, Listener.ZOOKEEPER)
    assert lines["zookeeper.connect"] == f"controller:{port}"
    assert f"clientPort={port}\nclientPortAddress={layout.host(CONTROLLER)}\n" in zookeeper_properties(
        layout, Path("/d")
    )


def test_segments_that_a_release_refuses_are_refused_before_it_starts() -> None:
    with pytest.raises(UsageError, match=r"log\.segment\.bytes: 900 is less than Kafka 4\.1\.0 takes, 1048576"):
        understood({"log.segment.bytes": 900}, NEW, 3)
    assert understood({"log.segment.bytes": 900}, release("3.9.1"), 3).properties["log.segment.bytes"] == "900"
