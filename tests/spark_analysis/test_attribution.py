"""Both engines say whose the anomalies of lying clients and broken brokers are, from the frames of a wire tap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from harness.checker import differing_parts, from_json
from harness.detection.mixes import stack_scenario
from harness.history.run_directory import RunDirectory
from harness.runner import plan, run
from harness.scenario import load
from tests.attribution.all_stories import TOLD, told
from tests.attribution.trial import lying, sides
from tests.spark_analysis.differential import Verdicts, verdicts_on
from tests.spark_analysis.one_job import OneJob


class Trial(NamedTuple):
    """The lie of a client, the bug of a broker, the load, the faults, and how many records a second are sent by day."""

    lie: str
    bug: str
    clients: str
    harm: str
    rate: int


TRIALS = [
    Trial("reports_a_record_elsewhere", "", "single", "none", 60),
    Trial("commits_nothing", "", "groups", "none", 15),
    Trial("asks_to_delete_more", "", "lookups", "none", 15),
    Trial("drops_a_record", "", "compaction", "none", 15),
    Trial("", "cleaner_drops_the_last_value", "compaction", "none", 15),
    Trial("", "fetch_repeats_contents", "single", "none", 30),
    Trial("", "commits_swapped", "groups", "kill", 15),
    Trial("", "marker_lost", "transactions", "none", 8),
]


def played(trial: Trial, root: Path, settings: Mapping[str, str]) -> Path:
    """The directory of the run of a trial."""
    overrides = {**settings, **({"replication.bugs": trial.bug} if trial.bug else {})}
    with pytest.MonkeyPatch.context() as patched, lying(patched, trial.lie):
        scenario = stack_scenario(trial.clients, trial.harm)
        return run(plan(scenario, "simulated", "4.1", 2, overrides=overrides, tap=True), root).path


def write_runs(root: Path) -> list[Path | str]:
    written: list[Path | str] = [
        played(trial, root / str(number), {"workload.rate": str(trial.rate)}) for number, trial in enumerate(TRIALS)
    ]
    late = plan(load("late-abort-ends-the-next-transaction"), "simulated", "2.8", 2, tap=True)
    written.append(run(late, root / "late").path)
    return [*written, *(told(name).write(root / name) for name in TOLD)]


def test_the_engines_disagree_about_whose_anomalies_are(one_job: OneJob) -> None:
    require_the_same(one_job.places(__name__), one_job.both(__name__))


@pytest.mark.nightly("one more job of Spark; by day clients send a quarter of these records")
def test_the_engines_disagree_about_whose_the_anomalies_of_busy_clients_are(
    tmp_path: Path, spark: SparkSession
) -> None:
    paths = [played(trial, tmp_path / str(number), {}) for number, trial in enumerate(TRIALS)]
    require_the_same(paths, verdicts_on(paths, spark))


def require_the_same(places: Sequence[Path | str], verdicts: Verdicts) -> None:
    """Both engines, and the document in the run's directory, say whose the anomalies of each run are."""
    for place, (spark, reference) in zip(places, verdicts, strict=True):
        assert differing_parts(spark, reference) == []
        assert {side for those in sides(reference).values() for side in those}
        document = RunDirectory.open(Path(place)).read_verdict()
        assert document is not None
        assert sides(from_json(document)) == sides(reference)
