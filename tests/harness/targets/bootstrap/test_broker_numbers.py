from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

import faults
from harness.errors import UsageError
from harness.fault import Fault
from harness.model import NO_LEADER, TopicPartition
from harness.runner import plan
from harness.runner.journal import NothingToUndo
from harness.scenario import Scenario, load, parse
from harness.targets.bootstrap.administration import Administration
from harness.targets.bootstrap.broker_numbers import BrokerNumbers
from harness.targets.bootstrap.target import BootstrapTarget

LEDGER = TopicPartition("ledger", 0)


@pytest.mark.parametrize("ids", [[0, 1, 2], [1, 2, 3], [7, 99]])
def test_brokers_are_called_by_their_ids(ids: list[int]) -> None:
    numbers = BrokerNumbers(ids)
    assert list(numbers.all()) == ids
    assert numbers.of(-1) == NO_LEADER
    assert not numbers.in_words()


@pytest.mark.parametrize("ids", [[99, 100], [111, 112], [1003, 1001]])
def test_ids_that_controllers_have_here_are_not_taken_for_theirs(ids: list[int]) -> None:
    numbers = BrokerNumbers(ids)
    assert [numbers.of(broker) for broker in sorted(ids)] == [0, 1]
    assert numbers.of(5000) == 2
    assert numbers.of(sorted(ids)[1]) == 1
    assert numbers.of(-1) == NO_LEADER
    assert f"{min(ids)} is called 0 here" in numbers.in_words()


@pytest.fixture
def large_ids(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Brokers 1001 to 1003, of which 1002 leads the ledger, and 1003 is the controller."""
    ids = [1001, 1002, 1003]
    listeners = {broker: SimpleNamespace(host="127.0.0.1", port=broker) for broker in ids}
    ledger = SimpleNamespace(
        partitions={0: SimpleNamespace(leader=1002, isrs=[1002, 1001], replicas=[1002, 1001, 1003])}
    )
    seen = SimpleNamespace(brokers=listeners, controller_id=1003, topics={"ledger": ledger})
    monkeypatch.setattr(Administration, "_tried", lambda *_: seen)
    monkeypatch.setattr(Administration, "broker_configs", lambda *_: {"min.insync.replicas": "2"})
    return ids


def aimed(target: BootstrapTarget, written: dict[str, object]) -> Fault:
    return faults.parse(written, "it").aimed(target.view(), seed=1)


def test_a_cluster_with_large_ids_is_seen_and_aimed_at_by_numbers(large_ids: list[int], tmp_path: Path) -> None:
    nodes = [{"id": broker, "address": "127.0.0.1", "port": broker} for broker in large_ids]
    commands = {"pid": "echo $$", "kill": ":", "start": ":", "pause": ":", "resume": ":"}
    file = tmp_path / "cluster.yml"
    file.write_text(yaml.safe_dump({"bootstrap": ["127.0.0.1:1001"], "commands": commands, "nodes": nodes}))
    made = plan(with_fault({"fault": "pause", "node": 2}), f"cluster:{file}")
    assert "1001 is called 0 here" in made.system.begins(3)
    target = made.system.target(tmp_path, 1, NothingToUndo())
    assert isinstance(target, BootstrapTarget)
    BootstrapTarget.start(target)
    assert target.nodes() == ["0", "1", "2"]
    view = target.view()
    assert (view.live, view.controller) == ((0, 1, 2), "2")
    assert view.partitions[LEDGER].leader == 1
    assert aimed(target, {"fault": "pause", "node": "leader"}).nodes() == ["1"]
    assert aimed(target, {"fault": "kill", "node": "controller"}).nodes() == ["2"]
    with pytest.raises(UsageError, match="there is no broker 1002; the brokers are 0, 1, 2"):
        plan(with_fault({"fault": "pause", "node": 1002}), f"cluster:{file}")


def with_fault(written: dict[str, object]) -> Scenario:
    document = yaml.safe_load(load("random-chaos").text)
    document["chaos"]["faults"] = [written]
    return parse(yaml.safe_dump(document))
