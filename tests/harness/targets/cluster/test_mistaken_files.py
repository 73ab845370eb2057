"""What is wrong in a cluster file is named with the file, the key, and what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.errors import UsageError
from harness.targets.cluster.cluster_file import read

SOUND: dict[str, Any] = {"bootstrap": ["kafka-1:9092", "kafka-2:9092,[::1]:9092"], "nodes": [{"id": 0}]}


def written(directory: Path, **keys: Any) -> Path:
    path = directory / "cluster.yml"
    path.write_text(yaml.safe_dump({**SOUND, **keys}))
    return path


@pytest.mark.parametrize(
    ("keys", "complaint", "remedy"),
    [
        (
            {"bootstrap": ["a:9092", "b:9093#client=c.properties#keep-topics"]},
            "bootstrap[1]: 'b:9093#client=c.properties#keep-topics' has options, which are keys of this file",
            "Write 'b:9093' here.",
        ),
        ({"bootstrap": ["kafka-1"]}, "bootstrap[0]: 'kafka-1' is not HOST:PORT.", "such as kafka-1:9092."),
        ({"bootstrap": "a:1"}, "bootstrap: 'a:1' is no list.", "Write [HOST:PORT, HOST:PORT]."),
        ({"prefix": "__x"}, "prefix: '__x' is how Kafka's own topics begin.", "without '__' in front."),
        (
            {"nodes": [{"id": 0, "address": "kafka-1"}]},
            "nodes[0]: address is 'kafka-1', and no IPv4 address.",
            "such as 10.0.0.1.",
        ),
        (
            {"nodes": [{"id": 0}, {"id": 1, "transport": "local"}]},
            "nodes[1].transport: 'local' has no key.",
            "or leave transport out for a shell on this machine.",
        ),
        ({"nodes": [{"id": "1"}]}, "nodes[0].id: '1' is no id of a node.", "as a number, without quotes"),
    ],
)
def test_a_mistake_is_refused_with_its_remedy(
    keys: dict[str, Any], complaint: str, remedy: str, tmp_path: Path
) -> None:
    path = written(tmp_path, **keys)
    with pytest.raises(UsageError) as refused:
        read(path)
    assert str(refused.value).startswith(f"cluster file {str(path)!r}: {complaint}")
    assert remedy in str(refused.value)


def test_addresses_and_the_controller_are_read(tmp_path: Path) -> None:
    nodes = [{"id": 0, "address": "10.0.0.1"}, {"id": "controller"}]
    file = read(written(tmp_path, nodes=nodes, prefix="_x"))
    assert file.bootstrap == tuple(SOUND["bootstrap"])
    assert [node.name for node in file.nodes] == ["0", "controller"]
