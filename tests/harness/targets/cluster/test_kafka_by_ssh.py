"""Apache Kafka harmed by commands over ssh gets the verdicts that it gets where seawall starts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from checkers import check
from harness.checker import EvidenceTier, Outcome, RunVerdict
from harness.history.run_directory import RunDirectory
from harness.runner import plan, run
from harness.scenario import load, parse
from harness.targets.kafka.fetching import fetched
from tests.harness.targets.cluster.kafka_by_ssh import kafka_by_ssh, lacking

RELEASE = "4.3.0"
SEED = 11
DURATION_S = 10.0
FAULTS: Mapping[str, Mapping[str, Any]] = {
    "leaders": {"fault": "kill", "node": "leader"},
    "brokers": {"fault": "kill", "node": "any"},
    "controllers": {"fault": "kill", "node": "controller"},
    "stops": {"fault": "stop", "node": "leader"},
    "pauses": {"fault": "pause", "node": "leader"},
    "paused followers": {"fault": "pause", "node": "follower"},
    "isolation": {"fault": "partition", "isolate": "leader", "for_s": [1.0, 2.5]},
    "out": {"fault": "partition", "between": ["leader", "follower"], "direction": "out"},
    "in": {"fault": "partition", "between": ["leader", "follower"], "direction": "in"},
}
ALL = tuple(FAULTS)


class Case(NamedTuple):
    """A scenario: which faults come up, and what is set beside."""

    faults: tuple[str, ...]
    overrides: Mapping[str, str] = {}
    chaos: Mapping[str, Any] = {}


def load_of(name: str, **parameters: str) -> Mapping[str, str]:
    """The overrides for another workload."""
    return {"workload.name": name, **{f"workload.{key}": value for key, value in parameters.items()}}


ONE_REPLICA = {"topic.replication_factor": "1", "settings.min.insync.replicas": "1"}
CASES: Mapping[str, Case] = {
    "leaders-killed": Case(("leaders",)),
    "brokers-killed": Case(("brokers",)),
    "controllers-killed": Case(("controllers",)),
    "leaders-stopped": Case(("stops",)),
    "leaders-paused": Case(("pauses",)),
    "followers-paused": Case(("paused followers",)),
    "leaders-isolated": Case(("isolation",)),
    "cut-from-followers": Case(("out",)),
    "cut-from-leaders": Case(("in",)),
    "everything": Case(ALL),
    "acks-1": Case(("isolation", "leaders"), {"workload.acks": "[1]", "workload.idempotent": "false"}),
    "acks-0": Case(("leaders", "pauses"), {"workload.acks": "[0]", "workload.idempotent": "false"}),
    "min-isr-1": Case(("leaders", "brokers"), {"settings.min.insync.replicas": "1"}),
    "min-isr-3": Case(("pauses", "in"), {"settings.min.insync.replicas": "3"}),
    "unclean-elections": Case(ALL, {"settings.unclean.leader.election.enable": "true"}, {"budget": "any"}),
    "one-replica": Case(("leaders", "stops"), ONE_REPLICA, {"budget": "any"}),
    "consumer-groups": Case(("leaders", "pauses"), load_of("consumer_groups", rate="60")),
    "transactions": Case(("leaders", "isolation"), load_of("transactions")),
    "compacted-keys": Case(("brokers", "isolation"), load_of("compacted_keys")),
    # What times out librdkafka may number anew and send again, which clients alone do not show.
    "pipelined-sends": Case(ALL, load_of("pipelined_sends", rate="1000", delivery_timeout_s="30")),
}

pytestmark = [
    pytest.mark.nightly("twenty scenarios on real Kafka, twice each; by day commands harm built-in brokers"),
    pytest.mark.skipif(bool(lacking()), reason=lacking() or "nothing is lacking"),
    pytest.mark.skipif(RELEASE not in fetched(), reason=f"seawall kafka fetch {RELEASE}"),
]


@pytest.fixture(scope="module")
def by_ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_by_ssh(tmp_path_factory.mktemp("machines") / "cluster", RELEASE) as target:
        yield target


def judged(case: Case, target: str, out: Path) -> tuple[RunDirectory, RunVerdict]:
    document = yaml.safe_load(load("random-chaos").text)
    document["chaos"] |= {"faults": [FAULTS[name] for name in case.faults], **case.chaos}
    document["cluster"]["settings"]["unclean.leader.election.enable"] = False
    text = yaml.safe_dump(document)
    planned = plan(parse(text), target, seed=SEED, duration_s=DURATION_S, overrides=case.overrides)
    directory = run(planned, out)
    [verdict] = check([directory.path], engine="reference")
    return directory, verdict


@pytest.mark.parametrize("name", CASES)
def test_kafka_is_judged_alike_by_commands_over_ssh_and_as_processes_of_seawall(
    name: str, by_ssh: str, tmp_path: Path
) -> None:
    targets = {"ssh": by_ssh, "process": f"process:{RELEASE}"}
    found = {kind: judged(CASES[name], target, tmp_path / kind) for kind, target in targets.items()}
    for directory, verdict in found.values():
        assert verdict.outcome is Outcome.PASS, (verdict, directory.path)
        rows = directory.read_table("faults")
        assert rows
        assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows), rows
    directory, verdict = found["ssh"]
    assert verdict.evidence is EvidenceTier.LOGS
    assert len({row["node"] for row in directory.read_table("replica_logs")}) == 3


def test_kafka_that_forgets_a_topic_when_it_is_started_again_is_guilty(by_ssh: str, tmp_path: Path) -> None:
    path = Path(by_ssh.partition(":")[2])
    file = yaml.safe_load(path.read_text())
    for node in file["nodes"]:
        start = node["commands"]["start"]
        node["commands"]["start"] = f"rm -rf {path.parent}/{node['id']}/data/seawall-*; {start}"
    forgetful = tmp_path / "forgetful.yml"
    forgetful.write_text(yaml.safe_dump(file))
    case = Case(("leaders",), ONE_REPLICA, {"budget": "any", "at_once": 1})
    _, verdict = judged(case, f"cluster:{forgetful}", tmp_path / "runs")
    assert verdict.outcome is Outcome.VIOLATION, verdict
    assert "lost-write" in {anomaly.kind for anomaly in verdict.anomalies}
