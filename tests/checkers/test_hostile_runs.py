"""Whatever a run directory holds, every command ends with a verdict or with a sentence."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import reports
from checkers import check
from harness.errors import SeawallError
from harness.history.run_directory import RunDirectory
from harness.history.schema import HISTORY, TIMELINE, Table
from harness.history.seal import inputs, sealed
from harness.jepsen import export_history
from harness.runner.observation import Gathered, observe
from tests.checkers.falsifying import JSON, POSITIONS, Edit, cell, edits, of_document
from tests.checkers.story import Story

DIARY = {
    "values": {"ledger-0": {"m0": 0, "m1": 1}},
    "orders": [["p", "ledger-0", [["m0", 0], ["m1", None]]]],
    "replicas": {"ledger-0": [0, 1, 2]},
    "groups": {"readers": {"given": {"ledger-0": [0]}, "position": {"ledger-0": 1}}},
    "unavailable": [], "leaderless": [], "unsettled": [], "exited": [],
}  # fmt: skip


def column(name: str, table: Table = HISTORY) -> int:
    """Which column of a table it is."""
    return [one.name for one in table.columns].index(name)


@cache
def told() -> Path:
    """A run in which a record is lost, checked."""
    path = Path(_PLACE.name) / "r"
    story = Story("r", partitions=2)
    for partition in (0, 1, 0):
        story.send(partition)
    story.poll(1, [0])
    story.fault()
    for node in (1, 2):
        story.cut(node, 0)
    story.elect(1)
    story.finish().write(path)
    RunDirectory(path).write_schedule_log(DIARY)
    check([path], engine="reference")
    return path


_PLACE = TemporaryDirectory()


def commands(path: Path) -> Sequence[Callable[[], object]]:
    """What seawall does with a run directory."""
    return (
        lambda: check([path], engine="reference"),
        lambda: reports.write(path),
        lambda: export_history(RunDirectory.open(path), path / "history.edn"),
        lambda: observe(Gathered.recorded(path)),
    )


def survive(change: Callable[[Path], None]) -> None:
    """Do all of it with a copy of the run that was changed; what is refused is refused in a sentence."""
    with TemporaryDirectory() as place:
        path = shutil.copytree(told(), Path(place, "r"))
        change(path)
        for command in commands(path):
            try:
                command()
            except SeawallError as refused:
                assert "\n" not in str(refused)[:500]  # noqa: PT017 - not always raised


def test_the_run_that_is_edited_is_sound() -> None:
    for command in commands(told()):
        command()


@settings(max_examples=10)
@given(st.lists(edits(), min_size=1, max_size=2))
@example([cell("history", 0, column("topic"), None)])
@example([cell("history", 0, column("partition"), None)])
@example([cell("history", 6, column("offset"), None)])
@example([cell("timeline", 0, column("incarnation", TIMELINE), 2**31 - 1)])
@example([of_document("schedule_log.json", -1, None)])
def test_an_edited_run_is_judged_or_refused(changes: list[Edit]) -> None:
    def change(path: Path) -> None:
        for one in changes:
            try:
                one(path)
            except (ValueError, OSError, RecursionError, SeawallError):
                continue  # what an edit before has left cannot be edited

    survive(change)


@pytest.mark.nightly("sixty more edits; by day ten, and those that once were trouble")
@settings(max_examples=60)
@given(st.lists(edits(), min_size=1, max_size=2))
def test_another_edited_run_is_judged_or_refused(changes: list[Edit]) -> None:
    test_an_edited_run_is_judged_or_refused.hypothesis.inner_test(changes)  # type: ignore[attr-defined]


@settings(max_examples=25)
@given(POSITIONS, st.none() | JSON.map(lambda value: (value,)))
@example(168, (2**62,))
def test_a_forged_verdict_is_drawn_or_refused(position: int, new: tuple[object] | None) -> None:
    """The digests are computed again, as a forger would."""
    with TemporaryDirectory() as place:
        path = shutil.copytree(told(), Path(place, "r"))
        of_document("verdict.json", position, new)(path)
        directory = RunDirectory(path)
        document = json.loads(directory.verdict_path.read_text())
        directory.write_verdict(sealed(document, inputs(directory)))
        try:
            reports.write(path)
        except SeawallError as refused:
            assert "verdict.json" in str(refused)  # noqa: PT017 - not always raised


@pytest.mark.parametrize("name", ["run.json", "verdict.json", "schedule_log.json", "faults.parquet"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(name: str) -> None:
    def change(path: Path) -> None:
        (path / name).unlink()
        os.mkfifo(path / name)

    survive(change)
