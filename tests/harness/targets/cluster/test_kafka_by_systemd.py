"""Apache Kafka that systemd runs, and starts again at once, harmed by the preset ``systemd``."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.checker import EvidenceTier, Outcome
from harness.model import NodeId
from harness.targets.addresses import Addresses
from harness.targets.kafka.fetching import fetched
from tests.harness.targets.cluster.own_systemd import ETC, RUN, lacking, own_systemd
from tests.harness.targets.cluster.plain_kafka import (
    BROKERS,
    CONTROLLER,
    KafkaNode,
    addresses_of,
    await_brokers,
    configure,
)
from tests.harness.targets.cluster.test_kafka_by_ssh import RELEASE, Case, judged

pytestmark = [
    pytest.mark.nightly("real Kafka; by day systemd runs built-in brokers"),
    pytest.mark.skipif(bool(lacking()), reason=lacking() or "nothing is lacking"),
    pytest.mark.skipif(RELEASE not in fetched(), reason=f"seawall kafka fetch {RELEASE}"),
]
UNIT = """\
[Unit]
DefaultDependencies=no
[Service]
ExecStart={command} {directory}/server.properties
StandardOutput=append:{directory}/log
StandardError=inherit
SuccessExitStatus=143
Restart=always
RestartSec=0
"""


@pytest.fixture(scope="module")
def by_systemd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``cluster:FILE`` of four units; no link is cut between nodes that all have the addresses of one machine."""
    directory, addresses = tmp_path_factory.mktemp("units"), Addresses.claim(len(BROKERS) + 1)
    try:
        ids = map(NodeId, (CONTROLLER, *BROKERS))
        nodes = [KafkaNode(node, directory / str(node), *addresses.listener(node)) for node in ids]
        for node in nodes:
            node.directory.mkdir()
        configure(nodes, RELEASE)
        units = {
            f"kafka-{node.name}": UNIT.format(command=node.command(RELEASE), directory=node.directory) for node in nodes
        }
        with own_systemd({f"{ETC}/{name}.service": unit for name, unit in units.items()}) as inside:
            subprocess.run((*inside, "systemctl", "start", *units), check=True)
            await_brokers(addresses_of(nodes))
            path = directory / "cluster.yml"
            path.write_text(yaml.safe_dump(file_of(nodes, inside)))
            yield f"cluster:{path}"
            assert not subprocess.run((*inside, "find", RUN, "-name", "*.d"), check=True, capture_output=True).stdout
    finally:
        addresses.release()


def file_of(nodes: Sequence[KafkaNode], inside: Sequence[str]) -> Mapping[str, Any]:
    """The cluster file."""
    entries = [
        {
            "id": node.name,
            "transport": {"argv": list(inside)},
            "variables": {"UNIT": f"kafka-{node.name}", "LOG_DIR": str(node.data)},
        }
        for node in nodes
    ]
    return {"bootstrap": addresses_of(nodes), "preset": "systemd", "nodes": entries}


@pytest.mark.parametrize("fault", ["leaders", "stops", "pauses"])
def test_kafka_is_harmed_by_systemctl_and_nothing_is_found(fault: str, by_systemd: str, tmp_path: Path) -> None:
    directory, verdict = judged(Case((fault,)), by_systemd, tmp_path)
    assert (verdict.outcome, verdict.evidence) == (Outcome.PASS, EvidenceTier.LOGS), verdict
    rows = directory.read_table("faults")
    assert rows
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows), rows
    assert len({row["node"] for row in directory.read_table("replica_logs")}) == len(BROKERS)
