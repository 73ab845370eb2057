"""What came of a run, for programs: one object on standard output, or nothing but the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli.outcome import RunOutcome
from harness.errors import EnvironmentFault
from tests.harness.cli.calling import Said, Seawall

RUN = ("run", "kip-101-double-failover", "--target", "simulated", "--generation", "4.1", "--seed", "5")
PLAIN = ("--engine", "reference")
BROKEN = ("--set", "replication.truncation=hw")


def read(said: Said) -> dict[str, Any]:
    """The only thing on standard output, which keeps what the schema promises."""
    document: dict[str, Any] = json.loads(said.out)
    RunOutcome.model_validate_json(said.out)
    assert document["exit_code"] == said.code
    return document


def test_a_healthy_run_is_one_object_and_what_people_read_goes_elsewhere(seawall: Seawall, tmp_path: Path) -> None:
    said = seawall(*RUN, *PLAIN, "--out", tmp_path, "--json")
    told = read(said)
    assert (told["verdict"], told["exit_code"], told["error"], told["anomalies"]) == ("pass", 0, None, {})
    assert (Path(told["run_directory"]) / "verdict.json").is_file()
    assert Path(told["report"]).is_file()
    assert told["replay"] == f"seawall {' '.join((*RUN, *PLAIN))} --out {tmp_path}"
    assert [one["seed"] for one in told["runs"]] == [5]
    assert "PASS. " in said.err


def test_a_broken_run_counts_its_anomalies_by_kind(seawall: Seawall, tmp_path: Path) -> None:
    told = read(seawall(*RUN, *PLAIN, *BROKEN, "--out", tmp_path, "--json", "--quiet"))
    assert (told["verdict"], told["exit_code"]) == ("violation", 1)
    assert told["anomalies"]["lost-write"] == {"count": 3, "excused": 0}


def test_a_quiet_run_leaves_the_exit_code_to_tell(seawall: Seawall, tmp_path: Path) -> None:
    said = seawall(*RUN, *PLAIN, *BROKEN, "--out", tmp_path, "--quiet")
    assert said == (1, "", "")
    [run] = tmp_path.glob("kip*/*/run.json")
    assert seawall("check", run.parent, "--engine", "reference", "--quiet") == (1, "", "")


def test_a_quiet_command_still_says_what_is_wrong_and_the_next_one_is_not_quiet(
    seawall: Seawall, tmp_path: Path
) -> None:
    said = seawall("run", "random-chaoss", "--quiet")
    assert (said.code, said.out) == (64, "")
    assert said.err.startswith("seawall: ")
    assert "reproduce: " in seawall(*RUN, *PLAIN, *BROKEN, "--out", tmp_path).err


@pytest.mark.parametrize(
    ("error", "code"), [(EnvironmentFault("There is no room."), 4), (KeyboardInterrupt(), 130), (ValueError("x"), 70)]
)
def test_a_run_that_an_error_ends_is_an_object_too(
    seawall: Seawall, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def ended(*_: object) -> Path:
        raise error

    monkeypatch.setattr("harness.cli.run.record", ended)
    told = read(seawall(*RUN, *PLAIN, "--json"))
    assert (told["exit_code"], told["verdict"], told["runs"]) == (code, None, [])
    assert told["error"] == (str(error) or "interrupted.")


def test_every_variant_of_an_entry_is_compared_with_its_prediction(seawall: Seawall) -> None:
    said = seawall("scenario", "run", "A18", "--target", "simulated", "--json")
    told = read(said)
    assert len(told["runs"]) > 1
    assert all(one["comparison"]["observed"] == one["comparison"]["predicted"] for one in told["runs"])
    assert "A18" in said.err


def test_a_prediction_that_does_not_come_true_is_the_code_and_the_command_that_shows_it(seawall: Seawall) -> None:
    words = ("scenario", "run", "A02", "--target", "simulated", "--generation", "4.1", *BROKEN)
    told = read(seawall(*words, "--json"))
    [run] = told["runs"]
    assert (run["exit_code"], told["exit_code"]) == (1, 1)
    assert run["comparison"]["differences"]
    assert told["replay"].startswith("seawall scenario run kip-101-double-failover --generation 4.1")
