"""What the workload compacted_keys does that others do not."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any

import pytest

from checkers.verdicts.memory import decided
from harness import compacted, runner
from harness.checker import RunVerdict, Verdict
from harness.detection.mixes import COMPACTION, stack_scenario
from harness.errors import UsageError
from harness.payload import Carried
from harness.runner.rehearsal import rehearse
from harness.workload import Circumstances, Features
from workloads import parse

Row = dict[str, Any]


@cache
def run(faults: str = "none", bugs: str = "", seed: int = 1) -> tuple[list[Row], RunVerdict]:
    overrides = {"replication.bugs": bugs} if bugs else {}
    rehearsal = rehearse(runner.plan(stack_scenario(COMPACTION, faults), "simulated", seed=seed, overrides=overrides))
    archive = rehearsal.archive
    tables = (archive.history, archive.tables["timeline"], archive.tables["replica_logs"])
    return list(archive.history), decided(rehearsal.manifest, tables, archive.tables["faults"])


def violations(verdict: RunVerdict) -> set[str]:
    return {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION}


def test_nothing_is_compacted_while_it_runs() -> None:
    history, verdict = run()
    assert verdict.anomalies == []
    scans = {row["op"]: row["offset"] for row in history if (row["f"], row["type"]) == ("scan", "invoke")}
    given = Counter(row["op"] for row in history if (row["f"], row["type"]) == ("scan", "ok"))
    last = max(given)
    assert scans[last] > 300
    assert given[last] < 100
    deleted = [row for row in history if row["f"] == "put" and compacted.is_tombstone(row["value"])]
    assert len({compacted.key_number(row["value"]) for row in deleted}) > 1


def test_no_reader_reads_the_log_when_all_is_over() -> None:
    history, _ = run("kill")
    puts = [row for row in history if row["f"] == "put"]
    final = [row for row in history if row["f"] == "scan" and row["final"]]
    assert {row["type"] for row in final} == {"invoke", "ok"}
    assert min(row["index"] for row in final) > max(row["index"] for row in puts)
    *others, last = puts
    assert last["type"] == "ok"
    assert compacted.key_number(last["value"]) not in {compacted.key_number(row["value"]) for row in others[:-1]}
    assert all(row["offset"] > last["offset"] for row in final if row["type"] == "invoke")


def test_a_key_that_was_given_up_stays_for_ever() -> None:
    history, verdict = run()
    assert verdict.anomalies == []
    puts = [row for row in history if row["f"] == "put" and row["type"] == "ok"]
    given = {row["value"] for row in history if row["f"] == "scan" and row["final"] and row["value"] is not None}
    keys, left = ({compacted.key_number(value) for value in found} for found in ({r["value"] for r in puts}, given))
    assert len(keys) > 30
    assert len(keys - left) > 15


@pytest.mark.parametrize(
    "bug",
    [
        "cleaner_drops_the_last_value",
        pytest.param("cleaner_drops_tombstones", marks=pytest.mark.nightly("a run like another")),
    ],
)
def test_a_cleaner_that_removes_too_much_is_not_found(bug: str) -> None:
    assert "lost-key" in violations(run(bugs=bug)[1])


def test_a_follower_that_loses_keys_is_found_by_its_disk_alone() -> None:
    _, verdict = run(bugs="followers_drop_the_last_value")
    assert violations(verdict) == {"replica-lost-key"}
    whose = {re.search(r"the log of node (\d)", one.why) for one in verdict.anomalies}
    assert {one[1] for one in whose if one} == {"1"}, "the first of the two followers"


def test_a_cleaner_that_lets_deleted_keys_come_back_is_not_found() -> None:
    anomalies = [one for one in run(bugs="tombstones_supersede_nothing")[1].anomalies if one.kind == "lost-key"]
    assert anomalies
    assert all(re.search("Tombstone .* was given value .* again", one.why) for one in anomalies)


def test_a_crash_in_a_swap_that_loses_a_segment_is_not_found() -> None:
    assert violations(run("kill", "segments_named_late")[1]) & {"lost-key", "shrunk-log"}


def test_it_runs_where_records_have_no_headers() -> None:
    parameters = parse("compacted_keys", {})
    with pytest.raises(UsageError, match="stores none"):
        parameters.refuse(
            Circumstances("process:0.10.2.2", False, Features(Carried(headers=False), False, None), (), False)
        )
