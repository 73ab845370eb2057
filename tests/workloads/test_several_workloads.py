"""Several workloads at once: what they are together, and what is refused."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest
import yaml

import workloads
from checkers.verdicts.memory import decided
from harness.checker import Outcome, RunVerdict, Verdict
from harness.detection.mixes import stack_scenario
from harness.errors import UsageError
from harness.exploration import loads
from harness.runner import plan
from harness.runner.rehearsal import Rehearsal, rehearse
from harness.scenario import load, parse
from harness.workload import Workload, WorkloadParameters
from tests.workloads.test_every_workload import SCENARIO
from workloads.several_workloads import SeveralWorkloads, SeveralWorkloadsParameters

PARTS = ("unique_sends", "pipelined_sends", "consumer_groups", "transactions", "compacted_keys", "deleted_records")


def several(*parts: dict[str, Any], **fields: Any) -> WorkloadParameters:
    return workloads.parse("several_workloads", {"parts": list(parts), **fields})


OF_ONE_ALONE = {"share_limits", "stands_alone", "with_prefix", "sends_to_own_topics"}
"""What only a workload that cannot be a part says otherwise than most."""

STEADY = {"name": "unique_sends", "rate": 20, "acks": ["all", 1], "delivery_timeout_s": 3}
PIPELINED = {"name": "pipelined_sends", "acks": [0], "idempotent": False, "size_up_to": 700, "delivery_timeout_s": 1}


def test_a_mix_asks_for_what_its_parts_ask_for() -> None:
    both = several(STEADY, PIPELINED, size=10)
    assert both.asked_acks == {-1, 0, 1}
    assert (both.answered_within_s, both.largest_size, both.has_background_load) == (3, 700, True)


def test_its_members_are_out_when_those_of_every_part_are() -> None:
    group = {"name": "consumer_groups", "session_timeout_s": 2, "poll_timeout_s": 3}
    assert several(STEADY, group).held_for_s == 3
    assert several(STEADY).held_for_s == 0


def test_a_promise_that_one_part_gives_up_is_given_up() -> None:
    numbered = {"name": "pipelined_sends"}
    assert several(numbered).appends_once
    assert several(numbered).numbers_records
    assert not several(numbered, {**STEADY, "acks": ["all"]}).appends_once
    assert not several(numbered, STEADY).numbers_records


def test_a_part_without_load_asks_for_nothing() -> None:
    idle = {"name": "unique_sends", "acks": [1]}
    assert several({"name": "pipelined_sends"}, idle).asked_acks == {-1}
    assert several({"name": "pipelined_sends"}, idle).appends_once


def test_without_numbers_no_part_numbers() -> None:
    plain = several({"name": "pipelined_sends"}, STEADY).without_numbers()
    assert not plain.appends_once
    assert plain == workloads.parse("several_workloads", plain.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ([], "parts"),
        ([{"rate": 5}], "a part has no name"),
        ([STEADY, STEADY], "'unique_sends' is there twice"),
        ([{"name": "several_workloads", "parts": [STEADY]}], "'several_workloads' is there twice, or within itself"),
        ([{"name": "unique_send"}], "parts: unknown workload 'unique_send'; did you mean"),
        ([{"name": "unique_sends", "members": 2}], "parts: unique_sends: unknown key 'members'"),
        ([{"name": "unique_sends", "client": "kafka-python"}], "'unique_sends' has a client of its own"),
    ],
)
def test_a_mix_that_cannot_be_is_refused_in_a_sentence(parts: list[dict[str, Any]], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        several(*parts)
    assert sentence in str(refused.value)


def test_a_mix_answers_every_question_for_its_parts() -> None:
    asked = {name for name in vars(WorkloadParameters) if not name.startswith("_") and name != "model_config"}
    asked -= {name for name in asked if name.startswith("model_")}
    assert asked - vars(SeveralWorkloadsParameters).keys() == OF_ONE_ALONE
    asked = {name for name in vars(Workload) if not name.startswith("_")} - {"begin", "program"}
    assert asked <= vars(SeveralWorkloads).keys()


def test_a_part_is_refused_where_it_would_be_refused_alone() -> None:
    killed = "[{name: unique_sends}, {name: consumer_groups, killed: 0.5}]"
    overrides = {"workload.name": "several_workloads", "workload.parts": killed}
    with pytest.raises(UsageError, match=r"killed=0\.5 kills a client's process, and librdkafka has none"):
        plan(load("random-chaos"), "builtin", overrides=overrides)


@cache
def mixed(bugs: str = "") -> Rehearsal:
    """Every workload that can be a part, beside the others, while a leader dies."""
    parts = [{"name": name, **workloads.KINDS[name].example} for name in PARTS]
    text = yaml.safe_dump(SCENARIO | {"workload": {"name": "several_workloads", "parts": parts}})
    return rehearse(plan(parse(text), "simulated", seed=1, overrides={"replication.bugs": bugs} if bugs else {}))


def judged(run: Rehearsal) -> RunVerdict:
    tables = run.archive.tables
    return decided(run.manifest, (run.archive.history, tables["timeline"], tables["replica_logs"]), tables["faults"])


def test_every_part_of_a_mix_does_its_work_and_passes() -> None:
    done = Counter((row["f"], row["type"]) for row in mixed().archive.history)
    for f in ("send", "poll", "commit", "put", "scan", "offset_for_time"):
        assert done[f, "ok"], f
    assert any(row["f"] == "scan" and row["final"] for row in mixed().archive.history)
    assert (judged(mixed()).outcome, judged(mixed()).reasons) == (Outcome.PASS, [])
    assert {"members_kept_ms", "tombstones_stay_ms"} <= mixed().manifest.guarantees.keys()


def test_a_bug_that_one_part_shows_is_found_in_a_mix() -> None:
    found = judged(mixed("commit_forgotten")).anomalies
    assert {one.kind for one in found if one.verdict is Verdict.VIOLATION} == {"lost-commit"}


@pytest.mark.parametrize(("bugs", "found"), [("", set()), ("first_fetch_skips_a_batch", {"group-skip"})])
def test_what_a_group_is_not_given_is_found_beside_transactions(bugs: str, found: set[str]) -> None:
    parts = [dict(loads.STEADY["groups"]), {"name": "transactions", "rate": 10, "producers": 1}]
    overrides = {"workload.name": "several_workloads", "workload.parts": yaml.safe_dump(parts)}
    overrides |= {"replication.bugs": bugs} if bugs else {}
    run = rehearse(plan(stack_scenario("groups", "none"), "simulated", seed=2, overrides=overrides))
    assert {one.kind for one in judged(run).anomalies if one.verdict is Verdict.VIOLATION} == found
