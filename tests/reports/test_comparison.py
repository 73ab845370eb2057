"""``seawall diff``: what two runs differ in, what counts as worse, and that the page says the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from harness.checker import Anomaly, Outage, Outcome, Recovery, RunVerdict, Verdict
from harness.cli import main
from reports import comparison, run
from reports.comparison import Change
from tests.reports.conftest import Recording, at, double_failover, lost_write, manifest

HOSTILE = "</title><script>alert('x')</script>&\"'"


def recorded(path: Path, outcome: Outcome, anomalies: Sequence[Anomaly] = (), **told: Any) -> Path:
    """A run of twenty sends that took 12 ms each, unless ``told`` says otherwise."""
    recording = Recording(manifest(path.name, "random-chaos", **told.get("manifest", {})))
    for number in range(20):
        recording.send(1 + number * told.get("every", 0.1), number, number, took=told.get("took", 0.012))
    return recording.write(path, RunVerdict("", outcome, "python", anomalies, recovery=told.get("recovery", ())))


def lines(found: Sequence[comparison.Line]) -> dict[str, tuple[str, str, str]]:
    return {one.what: (one.a, one.b, one.change.value) for one in found}


def recovery(outage_s: float, back_s: float) -> tuple[Recovery, ...]:
    outages = (Outage(at(2), at(2 + outage_s)),)
    return (Recovery("ledger", 0, at(5), at(5 + back_s), at(5 + back_s), outages),)


def test_a_loss_that_only_b_has_makes_it_worse_and_the_other_way_round_better(tmp_path: Path) -> None:
    a = recorded(tmp_path / "a", Outcome.PASS)
    b = recorded(tmp_path / "b", Outcome.VIOLATION, [lost_write(3), lost_write(4)])
    found = comparison.compare(a, b)
    assert found.worse == ("outcome", "lost-write in ledger/0")
    assert lines(found.anomalies) == {"lost-write in ledger/0": ("none", "2 VIOLATION", "worse")}
    assert comparison.compare(b, a).worse == ()
    assert comparison.compare(b, a).anomalies[0].change is Change.BETTER


def test_losses_match_by_kind_and_place_whatever_their_offsets_and_numbers(tmp_path: Path) -> None:
    a = recorded(tmp_path / "a", Outcome.VIOLATION, [lost_write(3)])
    b = recorded(tmp_path / "b", Outcome.VIOLATION, [lost_write(9), lost_write(15)])
    assert comparison.compare(a, b).worse == ()
    elsewhere = recorded(tmp_path / "c", Outcome.VIOLATION, [lost_write(3, partition=1)])
    assert comparison.compare(a, elsewhere).worse == ("lost-write in ledger/1",)


def test_what_the_configuration_permits_is_not_worse(tmp_path: Path) -> None:
    a = recorded(tmp_path / "a", Outcome.PASS)
    b = recorded(tmp_path / "b", Outcome.PASS, [lost_write(3, Verdict.DOCUMENTED)])
    assert lines(comparison.compare(a, b).anomalies)["lost-write in ledger/0"] == ("none", "1 DOCUMENTED", "same")


@pytest.mark.parametrize(
    ("a", "b", "worse"),
    [
        ({"recovery": recovery(1.5, 2)}, {"recovery": recovery(2.4, 2.9)}, []),
        ({"recovery": recovery(1.5, 2)}, {"recovery": recovery(4, 2)}, ["longest outage"]),
        (
            {"recovery": recovery(1.5, 2)},
            {"recovery": recovery(1.5, 9)},
            ["first acknowledgement after healing", "ISR full after healing"],
        ),
        ({"took": 0.012}, {"took": 0.030}, []),
        ({"took": 0.012}, {"took": 0.090}, ["latency p50", "latency p99"]),
        ({"every": 0.01}, {"every": 0.02}, ["acknowledgements"]),
        ({"every": 0.02}, {"every": 0.01}, []),
    ],
)
def test_a_measure_is_worse_beyond_tolerance(
    tmp_path: Path, a: dict[str, Any], b: dict[str, Any], worse: list[str]
) -> None:
    one, other = (recorded(tmp_path / name, Outcome.PASS, **told) for name, told in (("a", a), ("b", b)))
    assert list(comparison.compare(one, other).worse) == worse
    assert comparison.compare(one, other, tolerance=100).worse == ()


def test_latencies_and_rates_are_those_of_acknowledged_sends(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a", Outcome.PASS)
    found = comparison.measured(run.read(path))
    assert found["latency p50"] == pytest.approx(12)
    assert found["latency max"] == pytest.approx(12)
    assert found["acknowledgements"] == pytest.approx(10)
    assert found["longest outage"] is None


def test_settings_that_differ_are_listed_and_others_not(tmp_path: Path) -> None:
    told = {"configuration": {"target": "builtin", "settings": {"min.insync.replicas": 1, "acks": "all"}}}
    other = {"configuration": {"target": "builtin", "settings": {"min.insync.replicas": 2, "acks": "all"}}}
    a = recorded(tmp_path / "a", Outcome.PASS, manifest=told)
    b = recorded(tmp_path / "b", Outcome.PASS, manifest={**other, "seed": 8})
    assert lines(comparison.compare(a, b).settings) == {
        "run.seed": ("7", "8", "different"), "settings.min.insync.replicas": ("1", "2", "different")
    }  # fmt: skip


def test_the_command_prints_it_writes_a_page_and_ends_with_1_when_b_is_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = recorded(tmp_path / "a", Outcome.PASS)
    b = recorded(
        tmp_path / "b", Outcome.VIOLATION, [lost_write(3, topic=HOSTILE)], manifest={"versions": {"x": HOSTILE}}
    )
    page = tmp_path / "diff.html"
    assert main(["diff", str(a), str(b), "--html", str(page)]) == 1
    out = capsys.readouterr().out
    assert f"B is worse: outcome, lost-write in {HOSTILE}/0\npage: {page}\n" in out
    tree = ET.fromstring(page.read_text().removeprefix("<!DOCTYPE html>"))
    assert f"B is worse: outcome, lost-write in {HOSTILE}/0" in "".join(tree.itertext())
    assert len(list(tree.iter("script"))) == 1
    assert main(["diff", str(b), str(a)]) == 0
    assert main(["diff", str(a), str(tmp_path / "none")]) == 64
    assert main(["diff", str(a), str(tmp_path)]) == 3


def test_a_run_compared_with_itself_has_nothing_to_list(tmp_path: Path) -> None:
    recording = double_failover()
    verdict = RunVerdict("", Outcome.AS_PREDICTED, "python", recording.anomalies)
    path = recording.write(tmp_path / "run", replace(verdict))
    found = comparison.compare(path, path)
    every = [found.outcome, *found.anomalies, *found.measures, *found.settings]
    assert {one.change for one in every} == {Change.SAME}
    assert len(found.anomalies) == 2
