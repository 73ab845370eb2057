from pathlib import Path

import pytest

from harness.broker.settings import NodeConfig, NodeFaults, Settings
from harness.errors import UsageError
from harness.model import Link, NodeId
from harness.replication.knobs import generation


def test_a_node_reads_the_configuration_that_was_written_for_it(tmp_path: Path) -> None:
    config = NodeConfig(
        node_id=NodeId(1), cluster_id="c", listener=("127.1.1.11", 9092), control=("127.1.1.11", 9094),
        controller=("127.1.1.100", 9093), names={"127.1.1.11": "1"}, data_dir="d", timeline="t", incarnation=3,
        knobs=generation("0.10"), settings=Settings(min_insync_replicas=2),
        faults=NodeFaults((Link("1", "clients"),), 4096, -1000),
    )  # fmt: skip
    config.write(tmp_path / "node.json")
    assert NodeConfig.read(tmp_path / "node.json") == config


def test_settings_are_spelled_as_kafka_spells_them() -> None:
    parsed = Settings.parse({"min.insync.replicas": "2", "auto.create.topics.enable": "true", "num.partitions": 3})
    assert parsed == Settings(min_insync_replicas=2, auto_create_topics_enable=True, num_partitions=3)


@pytest.mark.parametrize(
    "values", [{"min.isr": 2}, {"min.insync.replicas": "two"}, {"min.insync.replicas": -1},
               {"auto.create.topics.enable": 1}, {"num.partitions": True}],
)  # fmt: skip
def test_a_setting_that_is_unknown_or_of_the_wrong_type_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=next(iter(values))):
        Settings.parse(values)
