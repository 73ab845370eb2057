"""``junit.xml`` as Jenkins's schema and another reader of the format see it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from xmlschema import XMLSchema

from harness.checker import EvidenceTier
from harness.nightly import junit
from harness.nightly.conclusion import ERRORS, FAILURES, PASSES
from harness.nightly.result import CellOutcome, CellResult, Try
from harness.nightly.standing import Standing
from tests.harness.nightly.cells import cell, lossy


@cache
def schema() -> XMLSchema:
    """Jenkins's schema; it is compiled late, for that takes a second or two, and every worker collects."""
    return XMLSchema(str(Path(__file__).with_name("jenkins-junit.xsd")))


def suites(path: Path, results: Sequence[CellResult], standings: junit.Standings | None = None) -> list[TestSuite]:
    """What junitparser reads, after the schema has approved of it."""
    junit.write(path / "junit.xml", results, standings)
    schema().validate(str(path / "junit.xml"))
    return list(JUnitXml.fromfile(str(path / "junit.xml")))


def case(suite: TestSuite) -> TestCase:
    [found] = suite
    assert isinstance(found, TestCase)
    return found


def properties(suite: TestSuite) -> dict[str, str]:
    return {one.name: one.value for one in suite.properties()}  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("outcome", CellOutcome)
def test_each_outcome_is_what_ci_systems_take_it_for(tmp_path: Path, outcome: CellOutcome) -> None:
    [suite] = suites(tmp_path, [cell(outcome=outcome, reason="A sentence.")])
    kinds = [type(one) for one in case(suite).result]
    if outcome in PASSES:
        assert kinds == []
    else:
        assert kinds == [Failure if outcome in FAILURES else Error if outcome in ERRORS else Skipped]
    assert [suite.tests, suite.failures, suite.errors, suite.skipped] == [
        1, kinds == [Failure], kinds == [Error], kinds == [Skipped]
    ]  # fmt: skip


def test_a_violation_has_its_story_its_reproduction_and_its_properties(tmp_path: Path) -> None:
    result = lossy(shard="2/5", evidence=EvidenceTier.CLIENTS, not_asked=("hw-regression", "illegal-isr"))
    [suite] = suites(tmp_path, [result], {(result.series, str(result.signature)): Standing.NEW})
    [failure] = case(suite).result
    assert (failure.type, failure.message) == ("violation", "violation: 3 lost-write in ledger/0")
    assert failure.text == "\n".join(result.story)
    output = case(suite).system_out
    assert output.splitlines()[0] == "random-chaos on builtin 4.1, seed 7"
    assert "Broker 2 truncated its log to offset 20." in output
    assert output.splitlines()[-1] == "reproduce: seawall run random-chaos --seed 7"
    assert properties(suite).items() >= {"seed": "7", "version.seawall": "0.1.0", "signature": "a1" * 8}.items()
    assert properties(suite).items() >= {"standing": "new", "plan": result.plan, "shard": "2/5"}.items()
    told = {"evidence": "clients only", "not_asked": "hw-regression, illegal-isr"}
    assert properties(suite).items() >= told.items()


def test_names_stay_the_same_when_seeds_are_drawn_anew(tmp_path: Path) -> None:
    def names(seeds: Sequence[int]) -> list[tuple[str, str]]:
        results = [cell(seed=seed) for seed in seeds] + [cell(seed=3, bank=True)]
        return [(case(one).classname, case(one).name) for one in suites(tmp_path, results)]

    assert names([11, 12]) == names([977, 4])
    bank, first, second = names([11, 12])
    assert bank == ("seawall.builtin-4_1", "random-chaos, seed 3 of the bank")
    assert [first[1], second[1]] == ["random-chaos", "random-chaos [2]"]


def test_every_try_is_counted(tmp_path: Path) -> None:
    tries = (
        Try(outcome=CellOutcome.INVALID, exit_code=3, seconds=60, run="runs/1"),
        Try(outcome=CellOutcome.PASS, exit_code=0, seconds=61, run="runs/2"),
    )
    [suite] = suites(tmp_path, [cell(tries=tries)])
    assert "try 1: invalid, 60.0 s\ntry 2: pass, 61.0 s" in case(suite).system_out
    assert properties(suite)["tries"] == "2"


def test_what_xml_forbids_is_replaced_and_what_it_escapes_is_text(tmp_path: Path) -> None:
    hostile = "</failure>]]>&<b>\"'\x00\x1b[31m\x0b\ud800\ufffe \N{SNOWMAN} \U0001f30a"
    [suite] = suites(
        tmp_path,
        [lossy(scenario=hostile, target=hostile, story=(hostile,), reproduce=hostile, settings={"a": hostile})],
    )
    shown = "</failure>]]>&<b>\"'�" + "�[31m��� \N{SNOWMAN} \U0001f30a"
    [failure] = case(suite).result
    assert failure.text == shown
    assert shown in case(suite).name
    assert case(suite).system_out.endswith(f"reproduce: {shown}")


def test_outputs_are_bounded_and_the_command_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tuple(f"Record {number} is gone." for number in range(5_000))
    [suite] = suites(tmp_path, [lossy(story=long)])
    [failure] = case(suite).result
    assert len(str(failure.text)) <= junit.MOST_OUTPUT
    assert len(case(suite).system_out) <= junit.MOST_OUTPUT
    assert case(suite).system_out.endswith("…\nreport: runs/7/report.html\nreproduce: " + lossy().reproduce)
    monkeypatch.setattr(junit, "MOST_OUTPUTS", 20_000)
    first, *_, last = suites(tmp_path, [cell(seed=8, story=long), lossy(seed=1, story=long), lossy(story=long)])
    assert "reproduce: " in case(first).system_out
    assert not case(last).system_out


def test_a_night_without_cells_is_valid(tmp_path: Path) -> None:
    assert suites(tmp_path, []) == []
