"""The museum is what was recorded: nothing that was not, and nothing of schedules that are not played any more."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import harness
from harness import scenario
from harness.errors import UsageError
from harness.history.run_directory import RunDirectory
from harness.museum.counting import Runs, counted, explanation, proves
from harness.museum.entry import Entry, entry, fingerprint, foretold, found, is_of_the_museum, read, write
from harness.museum.exhibits import BUSY, EXHIBITS, MISTAKEN
from harness.museum.page import page
from harness.museum.parity import State, is_played, state
from harness.runner.known_differences import KNOWN_DIFFERENCES
from harness.runner.matrix import impossible
from harness.targets.kafka.releases import release
from tests.harness.cli.calling import Seawall

ROOT = Path(harness.__file__).parents[1]
RECORDED = read(ROOT / "reports" / "museum.json")
SHELF = scenario.shipped()
SHIPPED = {one.id: one for one in SHELF}
QUIET = """\
id: quiet
catalogue: A99/quiet
title: Nothing happens
source: a test
cluster: {brokers: 2}
topics: [{name: ledger, replication_factor: 2, replicas: [0, 1]}]
workload: {name: unique_sends, consumers: 1}
schedule: [{send: {per_partition: 2}}]
outcomes:
  "4.1": {outcome: [safe], final_logs: {ledger-0: {all: [m0..m1@0]}}}
"""
A_RUN = Entry(
    run="quiet/1", scenario="quiet", catalogue="A99/quiet", release="4.1.0", target="process:4.1.0", generation="4.1",
    seed=1, schedule="", started="2026-11-22T00:00:00", prediction="", predicted=("safe",), observed=("safe",),
    differences=(), logs={}, acknowledged=2, run_s=1.0, detected_s=1.0,
)  # fmt: skip


@cache
def recorded_page() -> str:
    return page(RECORDED, SHELF)


@cache
def recorded_runs() -> Runs:
    return counted(RECORDED, SHIPPED)


@pytest.fixture
def recorded(seawall: Seawall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run directory that says that it was recorded on the release 4.1.0 of Kafka."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / "quiet.yaml").write_text(QUIET)
    monkeypatch.setattr(scenario, "_SHIPPED", shelf)
    seawall("scenario", "run", "quiet", "--target", "simulated", "--seed", "5", "--out", str(tmp_path / "runs"))
    (path,) = found([tmp_path / "runs"])
    told(path, "process:4.1.0", {"kafka": "4.1.0"})
    return path


def told(path: Path, target: str, versions: Mapping[str, str]) -> None:
    """Let a run directory say that the run was of ``target``, and of these versions."""
    directory = RunDirectory.open(path)
    manifest = directory.manifest()
    configuration = {**manifest.configuration, "target": target}
    guarantees = {**manifest.guarantees, "timeline": "sampled", "retention": True, "settles": False}
    for name in ("laggards_leave_ms", "time"):
        guarantees.pop(name, None)
    directory.write_manifest(replace(manifest, versions=versions, configuration=configuration, guarantees=guarantees))


def test_the_page_is_what_the_recorded_runs_make_of_it() -> None:
    written = (ROOT / "docs" / "museum.md").read_text(encoding="utf-8")
    assert written == recorded_page(), "write it again: `seawall museum`"


def test_nothing_that_differed_names_a_place_on_the_machine_that_it_was_recorded_on() -> None:
    told = [difference for one in RECORDED for difference in one.differences]
    assert not [difference for difference in told if re.search(r"(?<![\w.])/\w+/\w+", difference)]


def test_every_exhibit_shows_a_run_that_went_as_predicted() -> None:
    shown = {name for (name, _), runs in recorded_runs().items() if any(one.agrees for one in runs)}
    assert [one.title for one in EXHIBITS if not shown.intersection(one.scenarios)] == []


def test_what_an_exhibit_says_of_an_outcome_was_recorded_and_nothing_recorded_goes_without_a_word() -> None:
    said = {(name, outcome) for one in EXHIBITS for name, outcomes in one.shows.items() for outcome in outcomes}
    shown = {name for one in EXHIBITS for name in one.scenarios}
    runs = [one for runs in recorded_runs().values() for one in runs if one.scenario in shown and one.agrees]
    assert said == {(one.scenario, one.observed) for one in runs}


def test_a_sentence_of_an_exhibit_is_said_of_no_release_but_those_on_which_it_was_seen() -> None:
    name = "kip-101-double-failover"
    others = [one for one in RECORDED if one.scenario != name]
    two = [one for one in RECORDED if one.scenario == name and one.release in ("0.11.0.3", "4.1.0")]
    written = page([*others, *two], SHELF)
    assert "\n| `A02` | 0.11.0.3 (3), 4.1.0 (4) | safe | every record is kept. |" in written
    assert "lost, and the replicas differ" not in written
    assert f"\n| `{name}` | no run counts yet |" in page(others, SHELF)


def test_of_an_outcome_that_was_not_predicted_an_exhibit_says_what_it_was() -> None:
    kept = recorded_runs()["kip-101-double-failover", "4.1.0"][0]
    lost = replace(kept, run="another", observed=("lost",), differences=("it differs",))
    row = "|  | 4.1.0 (5) | **lost or safe** (predicted: safe) |"
    assert row in page([*RECORDED, lost], SHELF)


def test_whatever_went_otherwise_than_predicted_is_explained() -> None:
    otherwise = [one for runs in recorded_runs().values() for one in runs if not one.agrees]
    assert [one.run for one in otherwise if explanation(one, SHIPPED) is None] == []
    assert set(MISTAKEN) <= {one.run for one in otherwise}
    assert set(BUSY) <= {one.run for one in otherwise if one.broke_off}
    assert not set(BUSY).intersection(MISTAKEN)


def test_what_a_release_is_known_to_do_otherwise_was_recorded_there() -> None:
    runs = [one for runs in recorded_runs().values() for one in runs]
    for known in KNOWN_DIFFERENCES:
        mine = [one for one in runs if known.is_of(one.scenario, one.release)]
        assert {one.release for one in mine if known.is_just(one.observed, one.differences)} == set(known.releases)


def test_a_new_run_that_differs_as_is_known_of_its_release_is_explained_and_another_one_is_not() -> None:
    (seen,) = [one for one in recorded_runs()["fast-failover-shorter-log", "0.10.2.2"] if proves(one)]
    again = replace(seen, run="fast-failover-shorter-log/tomorrow")
    worse = replace(again, differences=(*seen.differences, "unexpected vanished-read: it is gone."))
    assert explanation(again, SHIPPED) == explanation(seen, SHIPPED) is not None
    assert explanation(worse, SHIPPED) is None
    assert "Not explained" not in page([*RECORDED, again], SHELF)
    assert "**Not explained.**" in page([*RECORDED, worse], SHELF)


def test_what_an_exhibit_says_rests_on_runs_that_prove_something() -> None:
    cell = "unclean-flip-flop-common-prefix", "2.8.1"
    runs = recorded_runs()[cell]
    assert [one.observed for one in runs if one.run in MISTAKEN] == [("documented",)]
    written = recorded_page()
    kept = "they agree with a record in common. | `c0@0 a1..a3@3 a4@7 a5@7` | 9/9 (1 broke off, 1 went wrong) |"
    assert f"2.1.1, 2.8.1, 3.9.1, 4.1.0 (2), 4.3.0 (2) | documented | {kept}" in written


def commands(written: str) -> list[tuple[str, str, int]]:
    """The scenario, the release and the seed of every command that the page gives."""
    found = re.findall(r"^seawall scenario run (\S+) --target process:(\S+) --seed (\d+)$", written, re.MULTILINE)
    return [(name, version, int(seed)) for name, version, seed in found]


def test_an_exhibit_is_to_be_seen_again_where_it_went_as_predicted_and_shows_the_flaw_if_any_run_did() -> None:
    runs, told = recorded_runs(), commands(recorded_page())
    assert len(told) == len(EXHIBITS)
    for exhibit, (name, version, seed) in zip(EXHIBITS, told, strict=True):
        flaw = next(iter(exhibit.shows[name]))
        assert (flaw, True, True) in {
            (one.observed, one.agrees, proves(one)) for one in runs[name, version] if one.seed == seed
        }


def test_where_no_run_shows_the_flaw_one_that_went_as_predicted_is_to_be_seen_again() -> None:
    name = "last-replica-loses-page-cache"
    others = [one for one in RECORDED if one.scenario not in ("last-replica-loses-page-cache-min-isr-1", name)]
    mine = [one for one in RECORDED if one.scenario == name]
    kept = [one for one in mine if one.release == "4.1.0"]
    broken = [one for one in mine if one.release == "0.10.2.2"]
    assert [version for one, version, _ in commands(page([*others, *kept, *broken], SHELF)) if one == name] == ["4.1.0"]
    assert [one for one, _, _ in commands(page([*others, *broken], SHELF)) if one == name] == []


def test_the_page_says_how_much_rests_on_one_try_and_what_was_seen_before_it_was_predicted() -> None:
    now = scenario.parse(QUIET)
    one = replace(A_RUN, schedule=fingerprint(now, "4.1"), prediction=foretold(now, "4.1"))
    rests = "Of 1 pairs of a scenario and a release of which something is proven, "
    assert f"{rests}1 rest on one try.\n" in page([one], [now])
    again, broken = replace(one, run="quiet/2"), replace(one, run="quiet/3", observed=(), differences=("late",))
    assert f"{rests}0 rest on one try.\n" in page([one, again, broken], [now])
    settled = (
        "1 rest on one try; in at least 1 († below), the schedule or the prediction was settled after a first run.\n"
    )
    assert f"{rests}{settled}" in page([one, replace(again, prediction="0")], [now])


def test_a_prediction_that_was_settled_after_a_run_is_marked() -> None:
    name, release = "kip-101-double-failover", "0.10.2.2"
    before = next(one for one in RECORDED if (one.scenario, one.release) == (name, release))
    unmarked, marked = f"| `A02` | {release} (3) | lost", f"| `A02` | {release}† (3) | lost"
    assert unmarked in recorded_page()
    assert marked in page([*RECORDED, replace(before, run="before", prediction="0")], SHELF)


def test_a_cell_says_what_was_seen_and_refers_to_why_it_differs() -> None:
    written = recorded_page()
    (row,) = [line for line in written.splitlines() if line.startswith("| A17/min-isr-2 `empty-disk")]
    cells = dict(zip(_cells(_heading(written)), _cells(row), strict=True))
    assert cells["0.10.2.2"] == "-"
    assert cells["4.1.0"].startswith("?")
    assert f"A17/min-isr-2 {cells['4.1.0']} on 4.2.0" in written
    number = cells["4.1.0"].removeprefix("?").translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))
    (note,) = [line for line in written.splitlines() if line.startswith(f"| {number} | ")]
    assert "apache/kafka#20716" in note


def _heading(written: str) -> str:
    return next(line for line in written.splitlines() if line.startswith("| entries | 0"))


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_what_a_release_can_play_is_played_or_is_said_not_to_be() -> None:
    written = recorded_page().splitlines()
    for version in {one.release for one in RECORDED}:
        (row,) = [line for line in written if re.match(rf"\| {re.escape(version)} \| [\d.]+ \| \d+ \|", line)]
        assert sum(map(int, _cells(row)[2:])) == sum(is_played(one, version) for one in SHELF)


@pytest.mark.parametrize(
    ("name", "version", "whether"),
    [
        ("kip-101-double-failover", "0.10.2.2", True),
        ("two-in-flight-idempotent", "0.10.2.2", False),
        ("diverging-fetch-acknowledges", "2.8.0", True),
        ("diverging-fetch-acknowledges", "2.8.1", False),
        ("zombie-follower", "2.0.0", False),
        ("random-chaos", "4.1.0", False),
    ],
)
def test_a_release_plays_what_it_has_and_what_comes_true_on_it_and_what_is_foretold(
    name: str, version: str, whether: bool
) -> None:
    assert is_played(SHIPPED[name], version) is whether


def test_one_run_that_went_otherwise_is_not_outweighed_and_one_that_broke_off_is() -> None:
    otherwise = replace(A_RUN, observed=("lost",), differences=("it differs",))
    broken = replace(A_RUN, observed=(), differences=("it did not come true",))
    assert state([]) is State.NOT_PLAYED
    assert state([broken]) is State.BROKE_OFF
    assert state([broken, A_RUN]) is State.AS_PREDICTED
    assert state([A_RUN, otherwise]) is State.OTHERWISE


def test_a_run_in_which_the_harness_made_a_mistake_says_nothing_of_kafka() -> None:
    mistaken = replace(A_RUN, run=next(iter(MISTAKEN)), observed=("lost",), differences=("it differs",))
    assert state([mistaken]) is State.BROKE_OFF
    assert state([mistaken, A_RUN]) is State.AS_PREDICTED


def test_every_scenario_of_an_exhibit_is_shipped_and_is_in_one_exhibit_only() -> None:
    names = [name for one in EXHIBITS for name in one.scenarios]
    assert set(names) <= set(SHIPPED)
    assert len(set(names)) == len(names)


def test_no_run_is_counted_where_real_kafka_is_said_not_to_do_it() -> None:
    counted_runs = [one for runs in recorded_runs().values() for one in runs if not one.broke_off]
    assert [one.run for one in counted_runs if impossible(SHIPPED[one.scenario], one.generation)] == []


def test_every_recorded_run_is_held_against_the_generation_of_its_release() -> None:
    assert [one.run for one in RECORDED if release(one.release).generation != one.generation] == []


def test_every_recorded_run_is_one_of_a_release() -> None:
    assert [one.run for one in RECORDED if one.target != f"process:{one.release}"] == []


def test_a_run_becomes_an_entry(recorded: Path) -> None:
    one = entry(recorded)
    assert (one.scenario, one.release, one.generation, one.seed) == ("quiet", "4.1.0", "4.1", 5)
    assert (one.predicted, one.observed, one.differences) == (("safe",), ("safe",), ())
    assert (one.logs, one.acknowledged) == ({"ledger-0": {"0": "m0@0 m1@0", "1": "m0@0 m1@0"}}, 2)
    quiet = scenario.load("quiet")
    assert (one.schedule, one.prediction) == (fingerprint(quiet, "4.1"), foretold(quiet, "4.1"))


def test_entries_are_read_as_they_were_written(recorded: Path, tmp_path: Path) -> None:
    one = entry(recorded)
    write(tmp_path / "museum.json", [one, one])
    assert read(tmp_path / "museum.json") == [one]
    assert read(tmp_path / "nothing.json") == []


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"bugs": {}}')
    with pytest.raises(UsageError, match=r"other\.json is no file of the museum's"):
        read(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("target", "versions"),
    [
        ("builtin", {}),
        ("compose:compose/kafka-kraft.yml", {"kafka": "4.1.0"}),
        ("process:/opt/a-patched-kafka", {"kafka": "4.1.0"}),
        ("process:3.9.1", {"kafka": "4.1.0"}),
    ],
)
def test_a_run_of_anything_but_a_release_is_not_of_the_museum(
    recorded: Path, target: str, versions: Mapping[str, str]
) -> None:
    assert is_of_the_museum(recorded)
    told(recorded, target, versions)
    assert not is_of_the_museum(recorded)
    with pytest.raises(UsageError, match="is none of a release of Kafka"):
        entry(recorded)


def test_where_there_is_no_run_nothing_is_added(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no run in"):
        found([tmp_path])


def test_runs_are_added_once_and_the_page_shows_them(recorded: Path, tmp_path: Path, seawall: Seawall) -> None:
    kept, shown = tmp_path / "museum.json", tmp_path / "museum.md"
    where = ("--json", str(kept), "--docs", str(shown))
    for new in (1, 0):
        said = seawall("museum", str(recorded), *where)
        assert said.code == 0
        assert f"1 runs, {new} of them new" in said.out
    assert "| A99/quiet `quiet` | S |" in shown.read_text()
    assert len(json.loads(kept.read_text())["runs"]) == 1


def test_runs_of_a_schedule_that_has_been_changed_since_do_not_count() -> None:
    now = scenario.parse(QUIET)
    one = replace(A_RUN, schedule=fingerprint(now, "4.1"), prediction=foretold(now, "4.1"))
    other = replace(one, run="quiet/older", schedule="0" * 12)
    assert counted([one, other], {"quiet": now}) == {("quiet", "4.1.0"): [one]}
    assert "1 more do not count" in page([one, other], [now])


@pytest.mark.parametrize(
    ("written", "changed"),
    [("outcome: [safe]", "outcome: [lost]"), ("m0..m1@0", "m0..m1@1"), ('"4.1"', '"3.7"')],
)
def test_runs_that_went_as_was_predicted_then_do_not_count_for_what_is_predicted_now(
    written: str, changed: str
) -> None:
    then, now = scenario.parse(QUIET), scenario.parse(QUIET.replace(written, changed))
    one = replace(A_RUN, schedule=fingerprint(then, "4.1"), prediction=foretold(then, "4.1"))
    assert counted([one], {"quiet": then})
    assert counted([one], {"quiet": now}) == {}


def test_a_run_that_is_judged_again_counts_for_what_is_predicted_now(recorded: Path) -> None:
    shelf = recorded.parents[2] / "shelf" / "quiet.yaml"
    shelf.write_text(QUIET.replace("outcome: [safe]", "outcome: [lost]"))
    one, now = entry(recorded), scenario.load("quiet")
    assert (one.predicted, one.observed, one.agrees) == (("lost",), ("safe",), False)
    assert counted([one], {"quiet": now}) == {("quiet", "4.1.0"): [one]}


def test_why_something_is_predicted_is_no_part_of_the_prediction() -> None:
    told_why = QUIET.replace("outcome: [safe]", "note: nothing happens, outcome: [safe]")
    assert foretold(scenario.parse(told_why), "4.1") == foretold(scenario.parse(QUIET), "4.1")


def test_how_long_a_step_may_take_is_no_change_of_the_schedule() -> None:
    patient, longer = QUIET.replace("2}}]", "2, within_s: 99}}]"), QUIET.replace("2}}]", "3}}]")
    now, same, other = (fingerprint(scenario.parse(text), "4.1") for text in (QUIET, patient, longer))
    assert now == same != other
