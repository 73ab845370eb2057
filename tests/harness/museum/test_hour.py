"""The record of an hour of random faults on real Kafka is what ``docs/targets.md`` says of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import reports
from checkers import check
from harness.checker import Outcome, from_json
from harness.errors import InvalidRun
from harness.history.run_directory import Manifest, RunDirectory, manifest_of
from harness.history.schema import FORMAT_VERSION

DOCS = Path(__file__).parents[3] / "docs"
HOUR = RunDirectory(DOCS / "evidence" / "hour-4.3.0")
TOLD = (DOCS / "targets.md").read_text()


def recorded() -> Manifest:
    """``run.json``, which is of format 2; what has changed since concerns the history, which is not kept here."""
    path = HOUR.path / "run.json"
    return manifest_of({**json.loads(path.read_text()), "format": FORMAT_VERSION}, path)


def written(number: int) -> str:
    """A number as the page writes it: ``368 518``."""
    return f"{number:,}".replace(",", " ")


def test_the_row_of_the_hour_says_what_its_record_says() -> None:
    manifest, verdict = recorded(), from_json(HOUR.read_verdict() or {})
    kinds = Counter(row["kind"] for row in HOUR.read_table("faults"))
    release = manifest.versions["kafka"]
    figures = [manifest.seed, verdict.counts["sends_ok"], verdict.counts["faults"]]
    figures += [kinds.pop(kind) for kind in ("kill", "partition", "disk_full", "pause", "clock")]
    [row] = [line for line in TOLD.splitlines() if line.startswith(f"| [{release}](evidence/hour-{release})")]
    assert [cell.strip() for cell in row.split("|")[2:-2]] == [str(figures[0]), *map(written, figures[1:])]
    assert not kinds
    assert manifest.configuration["duration_s"] == 3600
    assert manifest.configuration["target"] == f"process:{release}"


def test_the_hour_was_a_pass_in_which_every_acknowledged_write_was_seen_committed() -> None:
    manifest, verdict = recorded(), from_json(HOUR.read_verdict() or {})
    assert verdict.run == manifest.run
    assert (verdict.outcome, manifest.state) == (Outcome.PASS, "complete")
    assert not [*verdict.anomalies, *verdict.reasons]
    assert verdict.counts["sends_ok"] == verdict.counts["acked_below_high_watermark"]
    assert any("For 55.7 s at the longest nobody looked at a broker that was up" in limit for limit in verdict.limits)
    assert "for 55.7 s at the longest no sample was taken of a broker that was up" in TOLD
    for name in ("history", "replica_logs"):
        assert written(manifest.tables[name]["rows"]) in TOLD


def test_every_fault_of_the_hour_was_proven_and_healed_and_as_many_as_the_page_says_restarted_the_misled() -> None:
    faults = HOUR.read_table("faults")
    assert len(faults) == recorded().tables["faults"]["rows"]
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in faults)
    misled = [row for row in faults if row["fault"].startswith("restart of ")]
    assert {row["kind"] for row in misled} == {"kill"}
    assert f"43 and {len(misled)} of the kills started brokers again that moved clocks" in TOLD


def test_what_is_kept_of_the_hour_is_neither_judged_nor_drawn_again_as_the_page_says() -> None:
    for refused in (lambda: check([HOUR.path], engine="reference"), lambda: reports.write(HOUR.path)):
        with pytest.raises(InvalidRun, match="format 2 is not this version's"):
            refused()
    assert "`seawall check` and `seawall report` refuse the directory with 3, whose format is 2" in TOLD


@pytest.mark.parametrize("name", ["run.json", "verdict.json", "faults.parquet"])
def test_the_record_of_the_hour_is_linked_and_names_no_place_of_the_machine_it_was_made_on(name: str) -> None:
    assert f"(evidence/hour-4.3.0/{name})" in TOLD
    said = str(HOUR.read_table("faults")) if name.endswith(".parquet") else (HOUR.path / name).read_text()
    assert not re.findall(r"(?<!\w)/\w+/", said), "a path of a file"
