"""The detection matrix: its bugs are real, its figures are those of the page, and known seeds show what they should."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkers.registry import KINDS
from checkers.verdicts.memory import decided
from harness.broker.settings import Settings
from harness.checker import Verdict
from harness.detection.by_tier import TIERS
from harness.detection.document import (
    NO_BROKER,
    NO_VIOLATION,
    OF_PROGRAMS,
    OF_RUNNING_CLUSTERS,
    OF_SHARE_GROUPS,
    document,
)
from harness.detection.figures import Figures, figures_from_json, figures_to_json
from harness.detection.matrix import (
    SEEDS_APART,
    Matrix,
    Score,
    best_cell,
    cells_of,
    collected,
    first_seed,
    measure,
)
from harness.detection.mixes import FAULTS, SYNTHETIC
from harness.detection.synthetic import HARM, told
from harness.detection.table import TABLE, chosen
from harness.detection.trial import SCENARIO, Cell, Trial, attempt
from harness.errors import UsageError
from harness.model import CORE, STACK
from harness.replication.bugs import BUGS, Bug
from harness.replication.knobs import GENERATIONS, Knobs, generation
from harness.scenario import load
from reports.power import POWER_FILE

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

FOR_SECONDS = ("stale_truncation_applied", "unreadable_acknowledged")
"""Bugs that take a run of many seconds to show."""

PAGE = Path(__file__).parents[3] / "docs" / "detection.md"
_COST = {mix.name: at for at, mix in enumerate(FAULTS)}
FIGURES = figures_from_json(json.loads(POWER_FILE.read_text()))
MEASURED = FIGURES.matrix


def shown_by(bug: Bug) -> tuple[Cell, int] | None:
    """The cell and the seed that show a bug soonest, as far as it costs little; a schedule before a random mix."""
    found = [(cell, score.first) for cell, score in MEASURED.scores[bug.name].items() if score.first is not None]
    return min(found, key=lambda one: (one[0].workload != SCENARIO, one[1], _COST.get(one[0].faults, 0)), default=None)


def test_there_are_more_than_twenty_five_bugs_of_brokers_and_controllers() -> None:
    found = [bug for bug in TABLE if bug.depth != SYNTHETIC and shown_by(bug) is not None]
    assert len(found) >= 25


def test_every_switchable_bug_is_in_the_table_once() -> None:
    assert len({bug.name for bug in TABLE}) == len(TABLE)
    assert {bug.knobs["bugs"] for bug in TABLE if "bugs" in bug.knobs} == set(BUGS)
    assert {bug.name for bug in TABLE if bug.depth == SYNTHETIC} == set(HARM)


def test_no_generation_has_a_bug() -> None:
    assert not [name for name, knobs in GENERATIONS.items() if knobs.bugs]


def test_what_switches_a_bug_on_changes_the_newest_rules() -> None:
    for bug in TABLE:
        assert (generation("4.1", bug.knobs) != Knobs()) == (bug.depth != SYNTHETIC), bug.name


def test_bugs_are_switched_on_in_the_order_of_the_table_and_unknown_ones_refused() -> None:
    assert generation("4.1", {"bugs": "torn_append_kept,ack_on_append"}).bugs == ("ack_on_append", "torn_append_kept")
    assert "bugs" in {field.name for field in fields(Knobs)}
    with pytest.raises(UsageError, match="ack_on_appent"):
        generation("4.1", {"bugs": "ack_on_appent"})
    with pytest.raises(UsageError, match="did you mean"):
        chosen("ack_on_appent")


def test_the_page_is_what_was_measured() -> None:
    assert PAGE.read_text() == document(FIGURES), "measure again with `seawall detection`"


def test_the_page_says_what_the_load_of_random_chaos_leaves_out() -> None:
    scenario = load("random-chaos")
    assert {*scenario.cluster.settings} == {"min.insync.replicas"}
    assert Settings().log_segment_bytes == 64 * 1_048_576
    assert not scenario.schedule
    said = " ".join(PAGE.read_text().split())
    assert "Every record is alone in its batch, and uncompressed. Logs stay in their first segment" in said


def test_every_bug_was_measured_in_every_cell_and_no_control_raised_an_alarm() -> None:
    for bug in TABLE:
        assert set(cells_of(bug)) == set(MEASURED.scores[bug.name]), bug.name
    assert not {cell: control.alarms for cell, control in MEASURED.controls.items() if control.alarms}


def test_a_bug_that_is_never_found_says_why() -> None:
    assert not [bug.name for bug in TABLE if shown_by(bug) is None and not bug.unnoticed]


def test_every_kind_of_anomaly_has_a_bug_that_is_detected_by_it_or_a_reason_why_none_can_be() -> None:
    caused = {kind for scores in MEASURED.scores.values() for score in scores.values() for kind in score.kinds}
    no_broker_s = {*NO_VIOLATION, *OF_PROGRAMS, *OF_RUNNING_CLUSTERS, *OF_SHARE_GROUPS}
    assert set(KINDS) - caused == no_broker_s, "add a bug, and measure it with `seawall detection --bugs`"


@pytest.mark.parametrize(
    ("kind", "bug", "schedule"),
    [
        ("unwritten-read", "divergence_unnoticed", "tail-of-another-cluster"),
        ("nonmonotonic-poll", "fetch_swaps_batches", "more-than-one-poll-takes"),
        ("log-overlap", "cut_segments_stay", "cut-at-the-start-of-a-segment"),
        ("zombie-append", "producer_epochs_unfenced", "given-up-and-late"),
    ],
)
def test_what_no_random_load_shows_a_schedule_does_and_not_without_the_bug(kind: str, bug: str, schedule: str) -> None:
    ((broken,), cell) = chosen(bug), Cell(STACK, SCENARIO, schedule)
    assert kind in attempt(cell, 0, bug, broken.knobs).kinds
    assert control(cell, 0).is_sound


def test_only_kinds_of_transactions_have_no_bug_of_a_broker() -> None:
    brokers = [MEASURED.scores[bug.name].values() for bug in TABLE if bug.depth != SYNTHETIC]
    caused = {kind for scores in brokers for score in scores for kind in score.kinds}
    assert set(KINDS) - caused == {
        *NO_BROKER,
        *NO_VIOLATION,
        *OF_PROGRAMS,
        *OF_RUNNING_CLUSTERS,
        *OF_SHARE_GROUPS,
    }


@pytest.mark.parametrize("kind", sorted(NO_VIOLATION))
def test_a_kind_that_is_never_a_violation_is_shown_by_a_bug_all_the_same(kind: str) -> None:
    _, bug = NO_VIOLATION[kind]
    shown: Counter[Verdict] = Counter()
    for seed in range(10):
        manifest, tables = told(seed, bug)
        shown.update(one.verdict for one in decided(manifest, tables, []).anomalies if one.kind == kind)
        manifest, tables = told(seed, "")
        assert kind not in {one.kind for one in decided(manifest, tables, []).anomalies}
    assert shown
    assert Verdict.VIOLATION not in shown


def test_figures_are_read_as_they_were_written() -> None:
    assert figures_from_json(json.loads(json.dumps(figures_to_json(FIGURES)))) == FIGURES


def test_every_bug_that_is_found_was_measured_in_each_tier_and_no_tier_accused_a_control() -> None:
    assert set(FIGURES.tiers) == {bug.name for bug in TABLE if best_cell(MEASURED.scores[bug.name]) is not None}
    assert not {bug: one.alarms for bug, one in FIGURES.tiers.items() if one.alarms.total()}


def test_less_evidence_never_finds_more_bugs() -> None:
    shares = [sum(one.found[name] for one in FIGURES.tiers.values()) for name in TIERS.values()]
    assert shares == sorted(shares)
    assert shares[0] < shares[-1]


def test_seeds_whose_control_is_not_sound_do_not_count() -> None:
    cell = Cell(CORE, "single", "none")
    sound, broken = Trial("pass"), Trial("violation", ("lost-write",))
    rows = [(cell, 0, {"": broken, "ack_on_append": broken}), (cell, 1, {"": sound, "ack_on_append": broken})]
    matrix = collected(rows)
    assert matrix.scores["ack_on_append"][cell].tried == 1
    assert matrix.scores["ack_on_append"][cell].first == 1
    assert matrix.controls[cell].alarms == {"lost-write": 1}


def test_what_does_not_pass_is_not_called_found() -> None:
    score = Score()
    for seed, outcome in enumerate(("inconclusive", "invalid", "broken", "pass")):
        score.add(seed, Trial(outcome))
    assert (score.tried, score.found, score.doubted, score.broken) == (4, 0, 2, 1)


def test_every_cell_has_seeds_of_its_own() -> None:
    firsts = {cell: first_seed(cell) for bug in TABLE for cell in cells_of(bug)}
    ordered = sorted(firsts.values())
    assert all(later - sooner >= SEEDS_APART for sooner, later in pairwise(ordered))
    assert firsts[Cell(CORE, "single", "none")] == 0


def test_a_cell_is_measured_with_its_own_seeds_whichever_bugs_are_chosen() -> None:
    (bug,) = chosen("transaction_reordered")
    ((cell, score),) = measure([bug], 3, 1, lambda done, of: None).scores[bug.name].items()
    assert score.first == first_seed(cell) > 0


def test_the_page_says_whether_cells_share_seeds() -> None:
    bug, (first, second) = TABLE[0], list(cells_of(TABLE[0]))[:2]
    shared, own = Score(tried=2, found=1, first=1), Score(tried=2, found=1, first=first_seed(second) + 1)
    for score, says in ((shared, "taken with the same seeds in every cell"), (own, "has seeds of its own")):
        assert says in document(Figures(Matrix({bug.name: {first: shared, second: score}}, {}), {}))


def test_the_page_tells_the_kinds_of_proof_apart() -> None:
    random, schedule = Cell(STACK, "single", "none"), Cell(STACK, SCENARIO, "crash-while-loading")
    missed, found = Score(tried=2), Score(tried=1, found=1, first=0)
    bugs = [bug.name for bug in TABLE if bug.depth == STACK][:2]
    scores = {bugs[0]: {random: missed, schedule: found}, bugs[1]: {random: found, schedule: found}}
    made_up = {"transaction_reordered": {Cell(SYNTHETIC, "single", "none"): found}}
    page = document(Figures(Matrix({**scores, **made_up}, {}), {}))
    assert "1 are found by random load and faults, 1 only by a schedule made for them, and 1 only in made-up" in page
    (only, both) = (next(line for line in page.splitlines() if line.startswith(f"| `{bug}`")) for bug in bugs)
    assert "| a schedule | | 0.0/0.00 |" in only
    assert f"| `{bugs[0]}` | `crash-while-loading` | 1/1 |" in page
    assert "`single`/`none` | 1/1: 21-100 |" in both


def test_what_is_missed_is_bounded_by_the_largest_cell_alone() -> None:
    cells = list(cells_of(TABLE[0]))
    scores = dict(zip(cells, map(Score, (12, 10, 12)), strict=False))
    page = document(Figures(Matrix({TABLE[0].name: scores}, {}), {}))
    assert "| 34 | 0 |" in page
    assert "24 % of the runs of a cell (0/12)" in page


def by_day_and_night() -> Iterator[ParameterSet]:
    """The bugs that a run shows; by day a schedule, producers alone and one bug of each cell of theirs."""
    late, cells = pytest.mark.nightly("whole brokers for seconds; by day tests/workloads has one for each load"), set()
    for bug in TABLE:
        if shown := shown_by(bug):
            cell, _ = shown
            is_long = cell.depth == STACK and cell.workload != SCENARIO and (cell in cells or cell.workload != "single")
            yield pytest.param(bug, id=bug.name, marks=[late] if is_long or bug.name in FOR_SECONDS else [])
            cells.add(cell)


@cache
def control(cell: Cell, seed: int) -> Trial:
    """Without any bug; many have the same one."""
    return attempt(cell, seed, "", {})


@pytest.mark.parametrize("bug", list(by_day_and_night()))
def test_a_bug_is_found_at_the_seed_that_the_figures_name_and_nothing_is_without_it(bug: Bug) -> None:
    shown = shown_by(bug)
    assert shown is not None
    cell, seed = shown
    assert control(cell, seed).is_sound
    assert attempt(cell, seed, bug.name, bug.knobs).is_detected


@pytest.mark.parametrize(
    "cell",
    [
        Cell(CORE, "single", "all"),
        Cell(STACK, "single", "kill"),
        pytest.param(
            Cell(STACK, "single", "all"), marks=pytest.mark.nightly("takes long; by day of one kind of faults")
        ),
    ],
    ids=str,
)
def test_one_seed_comes_to_the_same_twice(cell: Cell) -> None:
    first, second = (attempt(cell, 3, "", {}) for _ in range(2))
    assert first._replace(cpu_s=0) == second._replace(cpu_s=0)
