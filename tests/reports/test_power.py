"""What a run that passed would have noticed, according to the detection matrix."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import reports
from harness.checker import Outcome, RunVerdict
from harness.replication.knobs import Knobs
from reports.power import POWER_FILE, Power, power, wilson
from reports.run import read
from tests.reports.conftest import manifest, page

PROMISED = {
    "min_insync_replicas": 2,
    "replication_factor": 3,
    "unclean_election": False,
    "settles": True,
}
MEASURED: dict[str, Any] = json.loads(POWER_FILE.read_text())


def powered(directory: Path) -> Power:
    found = power(read(directory))
    assert found is not None
    return found


@pytest.fixture
def passed(tmp_path: Path, new_recording: Callable[[Any], Any]) -> Callable[..., Path]:
    """A run of 200 records that passed, with so many faults, and with all that the matrix had."""
    made = iter(range(100))

    def write(
        faults: int = 0,
        *,
        kind: str = "kill",
        node: str = "1",
        records: int = 200,
        weak: int = 0,
        outcome: Outcome = Outcome.PASS,
        evidence: bool = True,
        members: int = 0,
        promised: dict[str, Any] | None = None,
        **told: Any,
    ) -> Path:
        name = f"run-{next(made)}"
        guarantees = {**PROMISED, **(promised or {})}
        recording = new_recording(manifest(name, "story", **{"generation": "4.1", "guarantees": guarantees, **told}))
        for value in range(20):
            recording.send(0.1 * value, value, value)
        for number in range(faults):
            recording.fault(f"f{number:03d}", kind, [node], (1.0, 1.1, 1.2, 1.5, 1.6), "it is gone")
        if evidence:
            recording.say(0.0, 1, "started")
            recording.log(1, [(0, 0, 0)])
        sends = {"sends": records + weak, "sends_ok": records + weak, "acked_all": records, "partitions_given": members}
        return Path(recording.write(tmp_path / name, RunVerdict("", outcome, "python", counts=sends)))

    return write


def lows(found: Power) -> dict[str, float]:
    return {one.bug: one.low for one in found.likely}


def test_a_longer_run_is_not_credited_with_more(passed: Callable[..., Path]) -> None:
    assert powered(passed(30, records=9000)).likely == powered(passed(300, records=90_000)).likely


def test_no_figure_is_above_that_of_a_cell_of_the_matrix(passed: Callable[..., Path]) -> None:
    for one in powered(passed(300, records=90_000)).likely:
        cells = MEASURED["bugs"][one.bug]
        scores = [cells.get(f"{depth}/{one.place.replace(', ', '/')}") for depth in ("core", "stack")]
        known = [wilson(score.get("found", 0), score["tried"]) for score in scores if score]
        assert (one.share, one.low) in [(interval.share, interval.low) for interval in known], one.bug


def test_faults_add_what_their_column_shows(passed: Callable[..., Path]) -> None:
    calm, killed = (lows(powered(passed(number))) for number in (0, 30))
    assert all(killed[bug] >= low for bug, low in calm.items())
    assert "truncates_to_the_watermark" in killed.keys() - calm.keys()


def test_less_than_a_run_of_the_matrix_gets_that_part_of_its_figures(passed: Callable[..., Path]) -> None:
    whole, part = (lows(powered(passed(30, records=number)))["truncates_to_the_watermark"] for number in (200, 10))
    control = MEASURED["controls"]["core/single/kill"]
    assert part == pytest.approx(whole * 10 / (control["sends"] / control["tried"]))
    assert not powered(passed(0, records=1)).likely


def test_every_bug_of_brokers_is_in_one_list(passed: Callable[..., Path]) -> None:
    found = powered(passed(3))
    names = [*(one.bug for one in found.likely), *found.unnoticed, *found.scheduled]
    of_brokers = {bug for bug, cells in MEASURED["bugs"].items() if not any("synthetic/" in name for name in cells)}
    assert len(names) == len(set(names))
    assert set(names) == of_brokers
    assert found.exposure == "200 records acknowledged with acks=all, 3 of kill"


def test_what_a_load_of_groups_shows_is_credited_to_runs_with_members_alone(passed: Callable[..., Path]) -> None:
    assert "commits_unfenced" in powered(passed(3)).unnoticed
    assert "commits_unfenced" in lows(powered(passed(3, records=2000, members=2)))


def test_what_a_load_of_its_own_shows_is_credited_to_runs_with_that_load_alone(passed: Callable[..., Path]) -> None:
    assert "zombies_obeyed" in powered(passed(3)).unnoticed
    load = {"parts": [{"name": "transactions"}], "name": "several_workloads"}
    assert "zombies_obeyed" in lows(powered(passed(3, records=2000, configuration={"workload": load})))


@pytest.mark.parametrize(
    ("workload", "bug"),
    [
        ({"name": "compacted_keys"}, "cleaner_drops_the_last_value"),
        ({"name": "consumer_groups", "protocol": ["classic", "consumer"]}, "partitions_given_before_release"),
        ({"name": "consume_transform_produce", "transactional_ids": "member"}, "txn_commits_unfenced"),
    ],
)
def test_a_load_of_its_own_is_known_by_the_workload_that_makes_it(
    passed: Callable[..., Path], workload: dict[str, Any], bug: str
) -> None:
    others = {"name": workload["name"], "protocol": ["classic"], "transactional_ids": "partition"}
    assert bug in lows(powered(passed(3, records=5000, configuration={"workload": workload})))
    if len(workload) > 1:
        assert bug in powered(passed(3, records=5000, configuration={"workload": others})).unnoticed


def test_what_only_a_schedule_shows_is_credited_to_no_run(passed: Callable[..., Path]) -> None:
    found = powered(passed(30, kind="corrupt_log"))
    assert "follower_skips_crc" in found.scheduled
    assert "follower_skips_crc" not in lows(found)


def test_the_surest_come_first(passed: Callable[..., Path]) -> None:
    shown = list(lows(powered(passed(3))).values())
    assert shown == sorted(shown, reverse=True)


@pytest.mark.parametrize("kind", ["log_dir_failure", "wipe_disk"])
def test_faults_that_the_matrix_has_not_tried_earn_nothing(passed: Callable[..., Path], kind: str) -> None:
    assert powered(passed(30, kind=kind)).likely == powered(passed()).likely


def test_a_controller_that_is_killed_is_no_broker_that_is_killed(passed: Callable[..., Path]) -> None:
    for node in ("controller", "controller-2"):
        assert "3 of control" in powered(passed(3, node=node)).exposure
    assert "of" not in powered(passed(3, node="controller", kind="clock")).exposure.split()
    assert "3 of partition" in powered(passed(3, node="controller", kind="partition")).exposure


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ({"generation": "3.7"}, "was not on the rules of 4.1"),
        ({"generation": ""}, "was not on the rules of 4.1"),
        ({"configuration": {"knobs": {"truncation": "hw"}}}, "was not on the rules of 4.1"),
        ({"promised": {"replication_factor": 2}}, "did not have 3 replicas of every partition"),
        ({"promised": {"replication_factor": None}}, "did not have 3 replicas of every partition"),
        ({"promised": {"min_insync_replicas": 1}}, "did not have min.insync.replicas=2"),
        ({"promised": {"unclean_election": True}}, "did not rule out unclean elections"),
        ({"records": 0, "weak": 200}, "had no record acknowledged with acks=all"),
    ],
    ids=str,
)
def test_nothing_is_claimed_of_a_run_that_is_not_what_the_matrix_had(
    passed: Callable[..., Path], run: dict[str, Any], why: str
) -> None:
    directory = passed(30, **run)
    assert powered(directory) == Power((why,))
    html = reports.write(directory).read_text()
    assert f"tells nothing of such a run, for it {why}." in html
    assert "gone unnoticed" not in html


def test_nothing_is_claimed_of_what_only_clients_have_recorded(passed: Callable[..., Path]) -> None:
    found = powered(passed(evidence=False, generation="", configuration={"imported": {"from": "jepsen"}}))
    assert found.lacking == ("was not on the rules of 4.1", "has no timeline of its brokers", "has no replica logs")


def test_remedies_are_no_other_rules(passed: Callable[..., Path]) -> None:
    knobs = {**asdict(Knobs()), "reelected_leader": "forgets"}
    assert not powered(passed(configuration={"knobs": knobs})).lacking


def test_who_says_only_by_topic_how_many_replicas_there_are_says_it_too(passed: Callable[..., Path]) -> None:
    topics = [{"name": "ledger", "replication_factor": 3}, {"name": "other", "replication_factor": 2}]
    unsaid = {"replication_factor": None}
    assert not powered(passed(promised=unsaid, configuration={"scenario": {"topics": topics[:1]}})).lacking
    assert powered(passed(promised=unsaid, configuration={"scenario": {"topics": topics}})).lacking


@pytest.mark.parametrize(
    ("promised", "found"),
    [
        ({}, 9),
        ({"settles": False}, 5),
        ({"idempotent_producers": False}, 6),
        ({"settles": False, "idempotent_producers": False}, 5),
    ],
    ids=str,
)
def test_what_is_no_violation_of_a_run_does_not_count(
    passed: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, promised: dict[str, bool], found: int
) -> None:
    score = {"tried": 10, "found": 9, "kinds": {"stuck": 6, "lost-write": 5, "duplicate": 4}}
    controls = {"core/single/none": {"tried": 10, "sends": 10}}
    measured = {
        "loads": {},
        "does": {"a_bug": ""},
        "controls": controls,
        "bugs": {"a_bug": {"core/single/none": score}},
    }
    monkeypatch.setattr("reports.power._measured", lambda: measured)
    directory = passed(promised=promised)
    (chance,) = powered(directory).likely
    assert (chance.share, chance.low) == wilson(found, 10)[:2]
    html = reports.write(directory).read_text()
    assert ("does not promise to come to rest" in html) == ("settles" in promised)
    assert ("producers are not idempotent" in html) == ("idempotent_producers" in promised)


def test_what_nobody_saw_between_two_looks_does_not_count(passed: Callable[..., Path]) -> None:
    known, directory = powered(passed(30)), passed(30, promised={"timeline": "sampled"})
    found = powered(directory)
    assert {"watermark_beyond_the_end", "recovery_drops_a_batch"} <= lows(known).keys() - lows(found).keys()
    assert lows(found)["ack_on_append"] > 0
    assert all(low <= lows(known)[bug] for bug, low in lows(found).items())
    html = reports.write(directory).read_text()
    assert html.count("only looked at now and then") == 1
    assert "<em>unjustified-advance</em> or <em>unjustified-join</em> does not count" in html


def test_only_a_run_that_passed_has_power(passed: Callable[..., Path]) -> None:
    assert power(read(passed(3, outcome=Outcome.VIOLATION))) is None
    assert "Detection power" not in reports.write(passed(4, outcome=Outcome.INVALID)).read_text()


def test_the_page_says_what_the_number_is_and_what_would_have_gone_unnoticed(passed: Callable[..., Path]) -> None:
    html = reports.write(passed(0)).read_text()
    assert "Detection power" in html
    assert "the lower end of the 95 % interval of that share" in html
    assert "a longer one is not claimed to be better" in html
    assert "truncates_to_the_watermark" in html.partition("These may well have gone unnoticed")[2]


def test_other_acks_are_read_from_other_rows(passed: Callable[..., Path]) -> None:
    assert {one.place.split(",")[0] for one in powered(passed(3)).likely} == {"single"}
    assert "mixed" in {one.place.split(",")[0] for one in powered(passed(3, weak=10)).likely}


def test_a_share_comes_with_its_interval() -> None:
    assert wilson(0, 10) == pytest.approx((0, 0, 0.2775), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((1, 0.7225, 1), abs=1e-4)
    assert wilson(5, 10) == pytest.approx((0.5, 0.2366, 0.7634), abs=1e-4)
    assert wilson(0, 0) == (0, 0, 1)


def test_what_the_load_left_out_is_told(passed: Callable[..., Path]) -> None:
    said = page(passed(3))
    assert "This run had no batch of several records: of bugs that need one it says nothing." in said
    assert "No run of the matrix records what brokers answer clients to ListOffsets" in said


def test_logs_that_start_at_0_have_lost_no_old_records(tmp_path: Path, new_recording: Callable[[Any], Any]) -> None:
    recording = new_recording(manifest("run", "story", generation="4.1", guarantees=PROMISED))
    recording.state(1.0, 1, (1, 0), (3, 3), (0, 1, 2))
    recording.log(1, [(0, 0, 0)])
    verdict = RunVerdict("", Outcome.PASS, "python", counts={"acked_all": 3, "sends_ok": 3})
    found = powered(recording.write(tmp_path / "run", verdict)).untried
    assert found == ("batch of several records", "deletion of old records")


def test_a_batch_of_several_records_and_a_log_that_starts_later_are_seen(
    tmp_path: Path, new_recording: Callable[[Any], Any]
) -> None:
    recording = new_recording(manifest("run", "story", generation="4.1", guarantees=PROMISED))
    recording.state(1.0, 1, (1, 0), (3, 3), (0, 1, 2))
    recording.timeline[-1]["log_start_offset"] = 1
    recording.log(1, [(1, 0, 1), (2, 0, 2)])
    recording.logs[-1]["batch_base_offset"] = 1
    verdict = RunVerdict("", Outcome.PASS, "python", counts={"acked_all": 3, "sends_ok": 3})
    assert powered(recording.write(tmp_path / "run", verdict)).untried == ()
