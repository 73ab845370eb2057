"""Both engines say whose the anomalies of lying clients and broken brokers are, from the frames of a wire tap."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.checker import differing_parts, from_json
from harness.detection.mixes import stack_scenario
from harness.history.run_directory import RunDirectory
from harness.runner import plan, run
from harness.scenario import load
from tests.attribution.share_stories import TOLD, told
from tests.attribution.trial import lying, sides
from tests.spark_analysis.one_job import OneJob

TRIALS = [
    ("reports_a_record_elsewhere", "", "single", "none"),
    ("commits_nothing", "", "groups", "none"),
    ("", "fetch_repeats_contents", "single", "none"),
    ("", "commits_swapped", "groups", "kill"),
    ("", "marker_lost", "transactions", "none"),
]
"""The lie of a client, the bug of a broker, the load, and the faults."""


def write_runs(root: Path) -> list[Path | str]:
    written: list[Path | str] = []
    for number, (lie, bug, clients, harm) in enumerate(TRIALS):
        overrides = {"replication.bugs": bug} if bug else {}
        with pytest.MonkeyPatch.context() as patched, lying(patched, lie):
            made = plan(stack_scenario(clients, harm), "simulated", "4.1", 2, overrides=overrides, tap=True)
            written.append(run(made, root / str(number)).path)
    late = plan(load("late-abort-ends-the-next-transaction"), "simulated", "2.8", 2, tap=True)
    written.append(run(late, root / "late").path)
    return [*written, *(told(name).write(root / name) for name in TOLD)]


def test_the_engines_disagree_about_whose_anomalies_are(one_job: OneJob) -> None:
    for place, (spark, reference) in zip(one_job.places(__name__), one_job.both(__name__), strict=True):
        assert differing_parts(spark, reference) == []
        assert {side for those in sides(reference).values() for side in those}
        document = RunDirectory.open(Path(place)).read_verdict()
        assert document is not None
        assert sides(from_json(document)) == sides(reference)
