"""What the workload deleted_records does that others do not."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.verdicts.memory import decided
from harness import runner
from harness.checker import RunVerdict, Verdict
from harness.detection.mixes import LOOKUPS, stack_scenario
from harness.errors import UsageError
from harness.history.run_directory import Manifest
from harness.payload import Carried
from harness.runner.rehearsal import rehearse
from harness.workload import Circumstances, Features
from workloads import parse

Row = dict[str, Any]

LATE = pytest.mark.nightly("a run like another")


def run(faults: str = "none", bugs: str = "", protocol: str = "4.1") -> tuple[list[Row], RunVerdict, Manifest]:
    overrides = {"replication.bugs": bugs} if bugs else {}
    planned = runner.plan(stack_scenario(LOOKUPS, faults), "simulated", protocol, seed=1, overrides=overrides)
    rehearsal = rehearse(planned)
    archive = rehearsal.archive
    tables = (archive.history, archive.tables["timeline"], archive.tables["replica_logs"])
    verdict = decided(rehearsal.manifest, tables, archive.tables["faults"])
    return list(archive.history), verdict, rehearsal.manifest


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


def test_a_cluster_without_delete_records_is_accepted() -> None:
    parameters = parse("deleted_records", {})
    old = Circumstances("process:0.10.2.2", False, Features(Carried(headers=False), False, None), (), False)
    with pytest.raises(UsageError, match="DeleteRecords, which target"):
        parameters.refuse(old)
