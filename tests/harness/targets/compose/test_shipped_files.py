"""The compose files that seawall ships: each is started, loaded, and broken by what is special about containers.

With every compose tool that is on this machine.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from harness.clock import SystemClock
from harness.model import CONTROLLER, CONTROLLER_ID, NodeId
from harness.target import TopicSpec
from harness.targets.compose.inspected_stack import find
from harness.targets.compose.target import ComposeTarget
from harness.targets.compose.written_stack import read
from harness.targets.kafka.server_properties import understood
from harness.wire.messages.quorum import METADATA_TOPIC
from tests.harness.targets.compose.conftest import Engine
from tests.harness.targets.contract import BROKERS, LEDGER, Trial, send_once
from tests.replica_rows import held

SHIPPED = Path(__file__).parents[4] / "compose"
PATIENCE_S = 120.0
SETTINGS = {"min.insync.replicas": 2, "default.replication.factor": 3}
BROKEN: tuple[dict[str, object], ...] = (
    {"fault": "kill", "node": 1},
    {"fault": "partition", "links": [[1, 2], [0, "clients"]]},
    {"fault": "disk_full", "node": 2, "free_bytes": 0},
    {"fault": "clock", "node": 1, "offset_ms": 3_600_000},
)
METADATA_COPIES = {
    "kafka-kraft.yml": {0, 1, 2, CONTROLLER_ID},
    "kafka-toxiproxy.yml": {0, 1, 2},
    "kafka-zookeeper.yml": set[int](),
}


@pytest.mark.nightly("starts a project for each shipped file; by day test_target starts one")
@pytest.mark.usefixtures("tool")
@pytest.mark.parametrize(
    ("file", "images"),
    [
        ("kafka-kraft.yml", {"KAFKA_IMAGE": "kafka:4.1.0"}),
        ("kafka-toxiproxy.yml", {"KAFKA_IMAGE": "kafka:4.1.0"}),
        ("kafka-zookeeper.yml", {"KAFKA_IMAGE": "kafka:2.8.1", "ZOOKEEPER_IMAGE": "zookeeper:2.8.1"}),
    ],
)
def test_a_shipped_file_runs_and_is_broken_and_whole_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str, images: dict[str, str]
) -> None:
    engine.need("tools", "toxiproxy", *images.values())
    for variable, image in images.items():
        monkeypatch.setenv(variable, f"seawall/{image}")
    kafka = find(read(str(SHIPPED / file)))
    target = ComposeTarget(tmp_path, kafka, understood(SETTINGS, kafka.release, BROKERS))
    trial = Trial(target, SystemClock(), partial(send_once, target), PATIENCE_S)
    try:
        target.start()
        target.create_topic(TopicSpec(LEDGER.topic, 1, BROKERS, (tuple(map(NodeId, range(BROKERS))),)))
        assert (CONTROLLER in target.nodes()) is (file != "kafka-toxiproxy.yml")
        assert trial.eventually(lambda: trial.send().kind == "ok")
        assert target.view().controller in target.nodes()
        for written in BROKEN:
            with trial.in_effect(**written) as fault:
                assert trial.holds(fault.probe), written
        assert trial.eventually(lambda: trial.send().kind == "ok")
    finally:
        target.stop()
    copies = {(row["topic"], row["node"]) for row in held(target)}
    assert {node for topic, node in copies if topic == LEDGER.topic} == {0, 1, 2}
    assert {node for topic, node in copies if topic == METADATA_TOPIC} == METADATA_COPIES[file]
