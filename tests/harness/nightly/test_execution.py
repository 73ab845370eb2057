"""A night runs its cells as processes, keeps its time limits, its budget and its retries, and goes on after a crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.births import boot, start_time
from harness.errors import UsageError
from harness.nightly import attempt
from harness.nightly.cells import expand
from harness.nightly.execution import Execution, Progress
from harness.nightly.keeping import ALWAYS, UNTIL_MERGED, Keep, prune
from harness.nightly.launch import command
from harness.nightly.night_directory import Lack, Night, NightDirectory
from harness.nightly.past import Past
from harness.nightly.plan import parse
from harness.nightly.result import CellOutcome, CellResult


class Silent:
    """A listener that counts."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def started(self, cell: Any, number: int) -> None:
        self.begun.append(f"{cell.group} {number}")

    def ended(self, result: CellResult) -> None: ...

    def ticked(self, progress: Progress) -> None: ...


def shell(name: str, script: str, **more: Any) -> dict[str, Any]:
    return {"kind": "command", "name": name, "argv": ["sh", "-c", script], **more}


def night(*groups: dict[str, Any], **changed: Any) -> Night:
    plan = parse(json.dumps({"cells": list(groups)}), "plan.yaml")
    return Night(
        **{"night": "n", "plan": "0" * 64, "plan_path": "plan.yaml", "cells": tuple(expand(plan, "n")), **changed}
    )


def played(path: Path, one: Night, listener: Silent | None = None) -> dict[str, CellResult]:
    directory = NightDirectory(path)
    with directory.held():
        directory.begin(one, "cells: []")
        Execution(directory, one, listener or Silent()).run()
    assert not (path / "running.json").exists()
    return written(path)


def written(path: Path) -> dict[str, CellResult]:
    """The results in the file by the names of commands."""
    return {one.scenario or one.cell: one for one in NightDirectory(path).results()}


def outcomes(results: dict[str, CellResult]) -> dict[str, str]:
    return {name: one.outcome.value for name, one in results.items()}


def test_a_command_is_judged_by_its_exit_code(tmp_path: Path) -> None:
    codes = {"pass": 0, "violation": 1, "inconclusive": 2, "invalid": 3, "environment": 4, "error": 64}
    groups = [shell(name, f"echo; echo said {name}; exit {code}", retries=0) for name, code in codes.items()]
    results = played(tmp_path, night(*groups, shell("killed", "kill -9 $$", retries=0), jobs=2))
    assert outcomes(results) == {**{name: name for name in codes}, "killed": "environment"}
    assert results["violation"].reason == "It ended with exit code 1: said violation"
    assert results["killed"].exit_code == -9
    assert results["pass"].tries[0].exit_code == 0
    assert results["pass"].started


def test_a_violation_is_never_tried_again_and_what_decides_nothing_is(tmp_path: Path) -> None:
    listener = Silent()
    groups = (
        shell("broken", "exit 1", retries=3),
        shell("flaky", f"test -e {tmp_path}/again && exit 0; touch {tmp_path}/again; exit 3", retries=3),
        shell("hopeless", "exit 2", retries=2),
    )
    results = played(tmp_path / "night", night(*groups), listener)
    assert listener.begun == ["broken 1", "flaky 1", "flaky 2", "hopeless 1", "hopeless 2", "hopeless 3"]
    assert outcomes(results) == {"broken": "violation", "flaky": "pass", "hopeless": "inconclusive"}
    assert [one.outcome.value for one in results["flaky"].tries] == ["invalid", "pass"]
    assert len(results["hopeless"].tries) == 3


def test_what_passes_its_time_limit_is_interrupted_and_then_killed_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "GRACE_S", 0.3)
    groups = (
        shell("obedient", "sleep 60", time_limit=2),
        shell("deaf", f"trap '' TERM; sleep 61 & echo $! > {tmp_path}/child; while :; do sleep 1; done", time_limit=2),
    )
    results = played(tmp_path / "night", night(*groups, jobs=2))
    assert outcomes(results) == {"obedient": "timeout", "deaf": "timeout"}
    assert "passed its time limit of 2 s" in results["deaf"].reason
    assert not lives(int((tmp_path / "child").read_text()))


def lives(pid: int) -> bool:
    return start_time(pid) != ""  # a zombie has none


def test_what_does_not_fit_into_the_budget_is_told_and_does_not_run(tmp_path: Path) -> None:
    groups = (shell("long", "exit 1", expected="2h"), shell("short", "exit 0", expected="1s"))
    one = night(*groups, budget_s=60.0)
    results = played(tmp_path, one)
    assert outcomes(results) == {"long": "not-run", "short": "pass"}
    assert results["long"].reason.startswith("It is expected to take 2 h 0 min, and of the budget of 60 s ")


def test_what_cannot_run_here_is_skipped_or_a_failure_of_the_environment(tmp_path: Path) -> None:
    lacking = {
        "command one": Lack(reason="no engine.", is_failure=False),
        "command two": Lack(reason="no engine.", is_failure=True),
    }
    results = played(tmp_path, night(shell("one", "exit 1"), shell("two", "exit 1"), lacking=lacking))
    assert outcomes(results) == {"one": "skipped", "two": "environment"}
    assert results["two"].reason == "The plan requires it: no engine."


def test_a_program_that_is_not_there_is_an_error_of_its_cell(tmp_path: Path) -> None:
    results = played(tmp_path, night({"kind": "command", "name": "gone", "argv": ["./no-such-program"]}))
    assert results["gone"].outcome is CellOutcome.ERROR
    assert "no-such-program cannot be run: No such file" in results["gone"].reason


def test_the_results_are_whole_at_any_time(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def note(results: Sequence[CellResult]) -> None:
        on_disk = [one.outcome for one in NightDirectory(tmp_path).results()]
        assert on_disk == [one.outcome for one in results]
        seen.append([one.value for one in on_disk])

    one = night(shell("a", "exit 0"), shell("b", "exit 1"))
    directory = NightDirectory(tmp_path)
    with directory.held():
        directory.begin(one, "")
        Execution(directory, one, Silent(), note).run()
    assert seen == [["not-run", "not-run"], ["pass", "not-run"], ["pass", "violation"]]


def test_a_night_that_goes_on_runs_only_what_has_not_finished(tmp_path: Path) -> None:
    groups = [shell(name, f"echo >> {tmp_path}/{name}") for name in ("a", "b")]
    one = night(*groups)
    played(tmp_path / "night", one)
    directory = NightDirectory(tmp_path / "night")
    first, second = directory.results()
    half = second.model_copy(update={"outcome": CellOutcome.NOT_RUN})
    directory.write_results([first.model_dump_json(), half.model_dump_json()])
    (directory.runs_of(one.cells[1]) / "half").mkdir()
    with directory.held():
        Execution(directory, directory.night(), Silent()).run()
    assert outcomes(written(directory.path)) == {"a": "pass", "b": "pass"}
    assert [len((tmp_path / name).read_text().splitlines()) for name in ("a", "b")] == [1, 2]
    assert not (directory.runs_of(one.cells[1]) / "half").exists()


def test_a_directory_holds_one_night_and_one_process_runs_it(tmp_path: Path) -> None:
    directory, one = NightDirectory(tmp_path), night(shell("a", "exit 0"))
    with directory.held():
        directory.begin(one, "")
        with pytest.raises(UsageError, match="holds a night already"):
            directory.begin(one, "")
        with pytest.raises(UsageError, match="another process runs this night"), NightDirectory(tmp_path).held():
            pass
    assert directory.night() == one
    with pytest.raises(UsageError, match=r"night\.json cannot be read"):
        NightDirectory(tmp_path / "elsewhere").night()


def test_an_interruption_ends_what_runs_and_leaves_true_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient(Silent):
        def ticked(self, progress: Progress) -> None:
            if progress.done == 1 and progress.running:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        played(tmp_path, night(shell("a", "exit 1"), shell("b", "sleep 60"), shell("c", "exit 0")), Impatient())
    results = written(tmp_path)
    assert outcomes(results) == {"a": "violation", "b": "not-run", "c": "not-run"}
    assert results["b"].reason == "The night was interrupted while it ran."
    assert not (tmp_path / "running.json").exists()


def test_a_violation_of_kinds_that_the_plan_allows_counts_as_predicted(tmp_path: Path) -> None:
    says = "echo 'seed 9: C1 lost-write at offset 2, broker 1, 550.000 ms (event 328): gone'; exit 1"
    cell = night(shell("x", says)).cells[0].model_copy(update={"kind": "simulate"})
    for kinds, outcome in ((("lost-write",), "as-predicted"), (("stuck",), "violation")):
        one = night(shell("x", says), cells=(cell,), allowed=(("x", kinds, "KAFKA-1."),))
        [result] = played(tmp_path / outcome, one).values()
        assert result.outcome.value == outcome
        assert [one.kind for one in result.incidents] == ["lost-write"]
        assert result.seed == 9
    assert result.signature


def test_a_cell_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        "from harness.nightly.launch import command\n"
        "child = subprocess.Popen(command(['sleep', '60']), start_new_session=True)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        deadline = time.monotonic() + 30
        while child.name() != "sleep" and time.monotonic() < deadline:
            time.sleep(0.02)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert psutil.wait_procs([child], timeout=30)[1] == []


def test_what_a_killed_night_left_is_ended_before_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "runtime"))  # the journals of other runs are not this night's
    directory = NightDirectory(tmp_path)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as left:
        mark = {"cell": "command a", "pid": left.pid, "start_time": start_time(left.pid), "boot": boot()}
        reused = {**mark, "pid": os.getpid()}  # of a process that had this number before
        directory.note_running([mark, reused])
        assert directory.clear() == [f"Ended process {left.pid}, which was left of command a."]
        left.wait(timeout=30)
    assert directory.clear() == []


def test_this_seawall_and_its_interpreter_have_names() -> None:
    said = subprocess.run(command(["seawall", "--version"]), capture_output=True, text=True, check=True)
    assert said.stdout.startswith("seawall ")
    said = subprocess.run(command(["python", "-c", "print(6 * 7)"]), capture_output=True, text=True, check=True)
    assert said.stdout == "42\n"


@pytest.mark.parametrize(
    ("keep", "outcome", "kept"),
    [
        (Keep.FAILING, CellOutcome.PASS, UNTIL_MERGED),
        (Keep.FAILING, CellOutcome.VIOLATION, UNTIL_MERGED | {"cluster", "broker_logs"}),
        (Keep.ALL, CellOutcome.PASS, UNTIL_MERGED | {"cluster", "broker_logs"}),
        (Keep.NONE, CellOutcome.VIOLATION, UNTIL_MERGED),
    ],
)
def test_what_is_kept_of_a_run(tmp_path: Path, keep: Keep, outcome: CellOutcome, kept: frozenset[str]) -> None:
    for name in ("history", "timeline", "replica_logs", "wire", "cluster", "broker_logs"):
        (tmp_path / name).mkdir()
    for name in (*ALWAYS, "faults.parquet", "schedule_log.json"):
        (tmp_path / name).touch()
    prune(tmp_path, outcome, keep)
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_a_night_is_the_past_of_the_next_one(tmp_path: Path) -> None:
    results = played(tmp_path, night(shell("a", "exit 1"), shell("b", "exit 0")))
    known = Past(results.values())
    assert known.nights == 1
    assert known.is_failing(results["a"].series)
    assert known.seconds(results["b"].series) == results["b"].seconds
