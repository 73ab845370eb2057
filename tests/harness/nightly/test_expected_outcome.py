"""A night compares runs with what their scenarios predict, as the matrix does: words, logs, known differences."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from harness import runner, scenario
from harness.cli.verdicts import Engine, judge
from harness.errors import ExitCode
from harness.nightly.cells import Cell, expand
from harness.nightly.expected_outcome import compared
from harness.nightly.plan import parse
from harness.nightly.reading import Reading, read
from harness.nightly.result import CellOutcome
from harness.outcome import Word
from harness.runner import known_differences
from harness.runner.known_differences import KnownDifference
from harness.runner.plan import plan

NAME = "kip-101-double-failover"
SHIPPED = Path(scenario.__file__).with_name("scenarios") / f"{NAME}.yaml"
KEPT = "{all: [m0..m4@0, m5..m7@2]}"
"""The final logs that generation 4.1 is predicted to have."""
LONGER = "{all: [m0..m4@0, m5..m8@2]}"
MISSED = [f"the log of ledger-{one} on broker {node} is m0..m4@0 m5..m7@2, not m0..m4@0 m5..m8@2."
          for one in range(3) for node in range(3)]  # fmt: skip


def cell(name: str, **settings: str) -> Cell:
    text = f"cells: [{{scenarios: ['{name}'], targets: [simulated], generations: ['4.1'], settings: {settings}}}]"
    return expand(parse(text, "plan.yaml"), "n")[0]


@pytest.fixture(scope="module")
def predicted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a try of A02 on generation 4.1, which loses nothing."""
    out = tmp_path_factory.mktemp("try-1")
    made = plan(scenario.load(NAME), "simulated", generation="4.1", seed=1)
    judge([runner.run(made, out, lambda _: None).path], Engine.REFERENCE)
    return out


@pytest.fixture
def with_longer_logs(tmp_path: Path) -> str:
    """The scenario, predicting a record more than there is."""
    changed = tmp_path / "changed.yaml"
    text = SHIPPED.read_text()
    assert KEPT in text
    changed.write_text(text.replace(KEPT, LONGER))
    return str(changed)


def known(found: Reading) -> Reading:
    """As from a release of Kafka."""
    return replace(found, kafka="4.1.0")


def test_a_run_that_goes_as_predicted_stays_what_it_is(predicted: Path) -> None:
    found = read(cell(NAME), predicted, 0, is_late=False)
    assert found.outcome is CellOutcome.PASS
    assert compared(cell(NAME), found) is found


def test_a_run_with_other_final_logs_does_not_reproduce_the_prediction(predicted: Path, with_longer_logs: str) -> None:
    one = cell(with_longer_logs)
    found = compared(one, read(one, predicted, 0, is_late=False))
    assert found.outcome is CellOutcome.NOT_REPRODUCED
    assert found.reason == " ".join(MISSED)


def test_settings_void_the_prediction(predicted: Path, with_longer_logs: str) -> None:
    one = cell(with_longer_logs, **{"replica.fetch.wait.max.ms": "500"})
    found = read(one, predicted, 0, is_late=False)
    assert compared(one, found) is found


def test_a_known_difference_of_the_release_is_as_predicted(
    predicted: Path, with_longer_logs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = cell(with_longer_logs)
    found = known(read(one, predicted, 0, is_late=False))
    difference = KnownDifference(NAME, ("4.1.0",), (Word.SAFE,), tuple(MISSED), "The leader stops early.")
    monkeypatch.setattr(known_differences, "KNOWN_DIFFERENCES", (difference,))
    explained = compared(one, found)
    assert explained.outcome is CellOutcome.AS_PREDICTED
    assert explained.reason == "It differs as is known of Kafka 4.1.0: The leader stops early."
    less = replace(difference, differences=difference.differences[1:])
    monkeypatch.setattr(known_differences, "KNOWN_DIFFERENCES", (less,))
    assert compared(one, found).outcome is CellOutcome.NOT_REPRODUCED


@pytest.mark.parametrize("before", [CellOutcome.VIOLATION, CellOutcome.TIMEOUT, CellOutcome.ENVIRONMENT])
def test_a_violation_and_a_run_without_a_verdict_stay_what_they_are(
    before: CellOutcome, predicted: Path, with_longer_logs: str
) -> None:
    one = cell(with_longer_logs)
    found = replace(read(one, predicted, 0, is_late=False), outcome=before)
    assert compared(one, found) is found


def test_a_predicted_stuck_partition_is_no_inconclusive_cell_and_other_gaps_are(tmp_path: Path) -> None:
    one = cell("bit-rot-in-the-leaders-log")
    made = plan(scenario.load("bit-rot-in-the-leaders-log"), "simulated", generation="4.1", seed=1)
    judge([runner.run(made, tmp_path, lambda _: None).path], Engine.REFERENCE)
    found = read(one, tmp_path, ExitCode.INCONCLUSIVE, is_late=False)
    assert (found.outcome, found.reason) == (CellOutcome.INCONCLUSIVE, "There is no final read.")
    assert compared(one, found).outcome is CellOutcome.AS_PREDICTED
    short = replace(found, reason="The final read of ledger-0 ended at 1, below the final high watermark 2.")
    assert compared(one, short).outcome is CellOutcome.AS_PREDICTED
    unread = replace(found, reason="Nothing was acknowledged, so nothing could be lost. There is no final read.")
    assert compared(one, unread) is unread


def test_a_run_that_lacks_a_table_stays_what_its_verdict_says(
    predicted: Path, with_longer_logs: str, tmp_path: Path
) -> None:
    shutil.copytree(predicted, tmp_path / "try-1", symlinks=True)
    one = cell(with_longer_logs)
    found = read(one, tmp_path / "try-1", 0, is_late=False)
    assert found.run is not None
    (found.run / "faults.parquet").unlink()
    assert compared(one, found) is found
