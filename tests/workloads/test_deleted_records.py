"""What the workload deleted_records does that others do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from checkers.verdicts.memory import decided
from harness import runner
from harness.checker import RunVerdict, Verdict
from harness.detection.mixes import LOOKUPS, stack_scenario
from harness.errors import UsageError
from harness.history.run_directory import Manifest
from harness.payload import Carried
from harness.runner.rehearsal import Rehearsal, rehearse
from harness.workload import Circumstances, Features
from workloads import parse

Row = dict[str, Any]

LATE = pytest.mark.nightly("a run like another")


EXPIRES = {
    "settings.log.retention.ms": "1500",
    "settings.log.retention.check.interval.ms": "300",
    "settings.log.segment.bytes": "1500",
}
"""Retention deletes what is older than 1.5 s, some ten times in a run."""


def planned(
    faults: str = "none", bugs: str = "", protocol: str = "4.1", settings: Mapping[str, str] | None = None
) -> runner.Plan:
    overrides = {"replication.bugs": bugs} if bugs else {}
    return runner.plan(
        stack_scenario(LOOKUPS, faults), "simulated", protocol, seed=1, overrides={**overrides, **(settings or {})}
    )


def run(faults: str = "none", bugs: str = "", protocol: str = "4.1") -> tuple[list[Row], RunVerdict, Manifest]:
    rehearsal = rehearse(planned(faults, bugs, protocol))
    return list(rehearsal.archive.history), judged(rehearsal), rehearsal.manifest


def judged(rehearsal: Rehearsal) -> RunVerdict:
    archive = rehearsal.archive
    tables = (archive.history, archive.tables["timeline"], archive.tables["replica_logs"])
    return decided(rehearsal.manifest, tables, archive.tables["faults"])


def violations(verdict: RunVerdict) -> set[str]:
    return {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION}


def test_a_run_deletes_nothing_or_finds_no_time() -> None:
    history, verdict, manifest = run()
    assert violations(verdict) == set()
    orders = manifest.orders or ()
    assert sum(order["error"] is None for order in orders) > 4
    assert manifest.guarantees["retention"]
    answers = [row["offset"] for row in history if (row["f"], row["type"]) == ("offset_for_time", "ok")]
    assert len({offset for offset in answers if offset is not None}) > 10
    assert any(offset is None for offset in answers)
    gone = {(one.kind, one.verdict) for one in verdict.anomalies}
    assert gone == {("lost-write", Verdict.DOCUMENTED), ("vanished-read", Verdict.DOCUMENTED)}


@pytest.mark.parametrize(("most", "deleted_of"), [("1", {0}), ("7", {0, 1})])
def test_partitions_that_are_to_be_spared_are_not(most: str, deleted_of: set[int]) -> None:
    orders = rehearse(planned(settings={"workload.deleted_partitions": most})).manifest.orders or ()
    assert {order["partition"] for order in orders} == deleted_of


@pytest.mark.parametrize(
    ("bug", "kind"),
    [
        ("lookup_is_strict", "unfounded-lookup"),
        pytest.param("deletes_one_more", "wrong-deletion", marks=LATE),
        ("deletes_nothing", "wrong-deletion"),
    ],
)
@pytest.mark.parametrize("faults", ["none", pytest.param("all", marks=LATE)])
def test_a_broken_broker_is_not_found(bug: str, kind: str, faults: str) -> None:
    _, verdict, _ = run(faults, bug)
    assert kind in violations(verdict)


@pytest.mark.parametrize("protocol", [pytest.param("0.11", marks=LATE), "2.8"])
def test_a_new_leader_answers_a_lookup_before_it_knows_its_watermark(protocol: str) -> None:
    """Generations before KIP-207 do, and it may say that there is no record: that is documented."""
    _, verdict, _ = run("kill", protocol=protocol)
    assert "unfounded-lookup" not in violations(verdict)


@pytest.mark.parametrize("faults", ["kill", pytest.param("none", marks=LATE), pytest.param("all", marks=LATE)])
def test_what_retention_deletes_counts_as_lost(faults: str) -> None:
    rehearsal = rehearse(planned(faults, settings=EXPIRES))
    starts = [row["detail"] for row in rehearsal.archive.tables["timeline"] if row["kind"] == "log_start"]
    assert sum('"reason": "retention"' in detail for detail in starts) > 4
    assert violations(judged(rehearsal)) == set()


@pytest.mark.parametrize("faults", ["kill", pytest.param("none", marks=LATE), pytest.param("all", marks=LATE)])
def test_retention_that_takes_milliseconds_for_seconds_is_not_found(faults: str) -> None:
    verdict = judged(rehearse(planned(faults, "retention_in_seconds", settings=EXPIRES)))
    assert {"lost-write", "vanished-read"} <= violations(verdict)


def test_a_cluster_without_delete_records_is_accepted() -> None:
    parameters = parse("deleted_records", {})
    old = Circumstances("process:0.10.2.2", False, Features(Carried(headers=False), False, None), (), False)
    with pytest.raises(UsageError, match="DeleteRecords, which target"):
        parameters.refuse(old)
