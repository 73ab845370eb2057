"""Where logs begin is asked like any client may, and shows what was deleted although nothing was to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.checker import EvidenceTier, Outcome, RunVerdict, Verdict
from harness.client_properties import Access
from harness.clients.topics import delete_records
from harness.history.delete_records_log import DeleteRecordsLog
from harness.target import TopicSpec
from harness.targets.bootstrap.administration import Administration
from harness.targets.builtin import BuiltinTarget
from tests.harness.targets.bootstrap.running_builtin import before_the_load_stops, judged, running, topics

DAY_MS = 86_400_000
ORDERS = TopicSpec("orders", 2, 3, configs={"min.insync.replicas": "2", "retention.ms": str(DAY_MS)})


def delete_everything(cluster: BuiltinTarget) -> None:
    """As a client that is none of the run's."""
    partitions = [name for name in cluster.view().partitions if name.topic in topics(cluster.bootstrap())]
    assert delete_records(Access(cluster.bootstrap()), partitions, None, 30, DeleteRecordsLog(lambda: 0)) is None


def deletions(verdict: RunVerdict) -> set[tuple[str | None, int | None]]:
    """The partitions of which clients were told that they are deleted, in violation of what is promised."""
    found = [one for one in verdict.anomalies if one.kind == "wrong-deletion"]
    assert {one.verdict for one in found} <= {Verdict.VIOLATION}
    return {(one.topic, one.partition) for one in found}


def test_records_that_are_deleted_though_nobody_of_the_run_has_asked_for_it_are_found(tmp_path: Path) -> None:
    with running(tmp_path / "cluster") as cluster:
        directory, verdict = judged(cluster, tmp_path / "sound", 1)
        with before_the_load_stops(lambda: delete_everything(cluster)):
            _, deleted = judged(cluster, tmp_path / "deleted", 1)
    assert {row["log_start_offset"] for row in directory.read_table("timeline")} - {None} == {0}
    assert verdict.outcome is Outcome.PASS, verdict
    assert not deletions(verdict)
    assert deleted.outcome is Outcome.VIOLATION, deleted
    assert deleted.evidence is EvidenceTier.METADATA
    assert len(deletions(deleted)) == 5


@pytest.mark.nightly("records have to be older than a thousandth of a day")
def test_a_broker_whose_retention_deletes_a_thousand_times_too_early_is_found(tmp_path: Path) -> None:
    settings = {"log.segment.bytes": 16_384, "log.retention.check.interval.ms": 1_000}
    with running(tmp_path / "cluster", bugs="retention_in_seconds", **settings) as broken:
        Administration(Access(broken.bootstrap())).create(ORDERS, 30, ("Read",))
        _, verdict = judged(broken, tmp_path / "runs", DAY_MS / 1e6 + 15, "#topic=orders", topic_partitions="2")
    assert verdict.outcome is Outcome.VIOLATION, verdict
    assert deletions(verdict) & {("orders", 0), ("orders", 1)}
