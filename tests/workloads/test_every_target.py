"""Every workload on every target in real time, while leaders are killed; the simulator has test_every_workload.

A target without processes of its own is a built-in cluster that a test runs: by address, where nothing is killed, and
by a cluster file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

import workloads
from checkers import check
from harness.checker import Outcome
from harness.errors import UsageError
from harness.runner import plan, run
from harness.scenario import load, parse
from harness.targets.kafka.fetching import fetched
from tests.harness.targets.cluster.plain_cluster import plain_cluster
from tests.harness.targets.compose.conftest import engine as engine  # noqa: PLC0414 - a fixture
from tests.harness.targets.compose.test_target import combined

RELEASE = "4.3.0"
IMAGE = "kafka:4.1.0"
DURATION_S = 4
PROGRAM = Path(__file__).parent / "programs" / "processor.py"
TARGETS = ("builtin", "process", "compose", "bootstrap", "cluster")
_NO_SHARES = "share groups"
REFUSED: Mapping[tuple[str, str], str] = {
    ("share_groups", "builtin"): _NO_SHARES,
    ("share_groups", "compose"): _NO_SHARES,
    ("share_groups", "bootstrap"): _NO_SHARES,
    ("share_groups", "cluster"): _NO_SHARES,
    ("deleted_records", "bootstrap"): "deletes records",
    ("deleted_records", "cluster"): "deletes records",
}
"""By workload and target, what the sentence says with which the run is refused; docs/workloads.md has the reasons.

Share groups need Kafka 4.3: the image is older, and the clusters that a test runs are built in.
"""

DONE: Mapping[str, set[str]] = {
    "unique_sends": {"send", "poll"},
    "pipelined_sends": {"send", "poll"},
    "consumer_groups": {"send", "poll", "committed", "commit"},
    "transactions": {"send in a transaction", "poll"},
    "consume_transform_produce": {"send", "send in a transaction", "committed", "commit", "output"},
    "compacted_keys": {"send", "poll", "put", "scan"},
    "deleted_records": {"send", "poll", "offset_for_time"},
    "share_groups": {"send", "acquire", "acknowledge"},
    "command": {"send", "output"},
    "several_workloads": {"send", "poll", "committed", "commit"},
}
"""By workload, the operations that have to come to a good end, besides those of the final read."""

pytestmark = pytest.mark.nightly("every workload on every target; by day each in virtual time, and some on brokers")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A built-in cluster as two targets: by address, and by its cluster file."""
    with plain_cluster(tmp_path_factory.mktemp("plain") / "cluster") as cluster:
        yield f"bootstrap:{cluster.bootstrap}", cluster.written()


def target_of(kind: str, request: pytest.FixtureRequest, directory: Path) -> str:
    """How the target is spelt; the test skips where this machine lacks what it takes."""
    if kind == "process":
        if RELEASE not in fetched():
            pytest.skip(f"Kafka {RELEASE} is not on this machine: seawall kafka fetch {RELEASE}")
        return f"process:{RELEASE}"
    if kind == "compose":
        found = request.getfixturevalue("engine")
        found.need_compose()
        found.need("tools", "toxiproxy", IMAGE)
        return f"compose:{combined(directory, (1, 2, 3))}"
    by_address, by_file = request.getfixturevalue("plain") if kind != "builtin" else ("", "")
    return {"builtin": "builtin", "bootstrap": by_address, "cluster": by_file}[kind]


def scenario_of(workload: str) -> str:
    """Leaders are killed under the workload's own example."""
    example: dict[str, Any] = dict(workloads.KINDS[workload].example)
    if workload == "command":
        example["argv"] = [sys.executable, str(PROGRAM)]
    document = yaml.safe_load(load("random-chaos").text)
    document["workload"] = {"name": workload, **example}
    document["chaos"] |= {"faults": [{"fault": "kill", "node": "leader"}], "at_once": 1}
    return yaml.safe_dump(document)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("workload", workloads.KINDS.own)
def test_a_sound_cluster_passes(workload: str, kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with ExitStack() as refusal:
        target = target_of(kind, request, tmp_path)
        if sentence := REFUSED.get((workload, kind)):
            refusal.enter_context(pytest.raises(UsageError, match=sentence))
        planned = plan(parse(scenario_of(workload)), target, seed=3, duration_s=DURATION_S)
        directory = run(planned, tmp_path / "runs")
        [verdict] = check([directory.path], engine="reference")
        assert verdict.outcome is Outcome.PASS, (verdict.reasons, directory.path)
        history = directory.read_table("history")
        ended = [row for row in history if row["type"] == "ok" and not (row["f"] == "poll" and row["final"])]
        done = {f"{row['f']}{' in a transaction' * row['txn']}" for row in ended}
        assert DONE[workload] <= done
        rows = directory.read_table("faults")
        assert bool(rows) is (kind != "bootstrap")
        assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows)
