"""The matrix of known outcomes, ``known_outcomes.yaml``, and its section of ``docs/scenarios.md``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from harness import scenario
from harness.outcome import Word
from harness.replication.knobs import GENERATIONS
from harness.runner.expectation import expectations, generations
from harness.runner.observation import spelled_out
from harness.runner.plan import plan
from harness.scenario import Expectation, Scenario
from harness.schedule import Step

DOCUMENT = Path(__file__).parents[3] / "docs" / "scenarios.md"
TITLE = "## Against the matrix of known outcomes\n"

NONE = "-"
"""The cell of a generation that does not know what the loss takes: not run there, or nothing comes of it."""

LETTERS = {
    Word.LOST: "L",
    Word.DIVERGED: "D",
    Word.STUCK: "K",
    Word.EXITED: "X",
    Word.UNAVAILABLE: "U",
    Word.SKIPPED: "skip",
    Word.DOCUMENTED: "w",
    Word.WEAK: "w",
    Word.SAFE: "S",
}
"""The matrix does not tell a documented loss from a weak one, and has no letter for other words."""


@dataclass(frozen=True)
class Row:
    """One line of the matrix: a cell for each generation, and the scenarios that replay it."""

    name: str
    scenarios: tuple[str, ...]
    cells: dict[str, str]
    diverged_at: dict[str, list[int]]

    @property
    def entry(self) -> str:
        """The entry of the catalogue of losses: ``A01``."""
        return self.name.partition(",")[0]


@dataclass(frozen=True)
class Deviation:
    """Where the scenarios of a row predict something else than its cells say, and why."""

    row: str
    generations: tuple[str, ...]
    predicted: frozenset[Word]
    reason: str
    ranges: str


@cache
def rows() -> list[Row]:
    """The matrix."""
    return [
        Row(
            fields["row"],
            tuple(fields["scenarios"]),
            dict(zip(GENERATIONS, fields["outcomes"], strict=True)),
            fields.get("diverged_at", {}),
        )
        for fields in _declared()["rows"]
    ]


@cache
def deviations() -> list[Deviation]:
    """What is known to differ."""
    return [
        Deviation(
            fields["row"],
            tuple(generations(fields["generations"].split(","), fields["row"])),
            frozenset(Word(word) for word in fields["predicted"]),
            fields["reason"].strip(),
            fields["generations"],
        )
        for fields in _declared()["deviations"]
    ]


def _declared() -> dict[str, Any]:
    declared: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("known_outcomes.yaml").read_text())
    return declared


def deviations_of(row: Row, generation: str) -> list[Deviation]:
    """The deviations listed for one cell: one at most, if the list is right."""
    return [one for one in deviations() if one.row == row.name and generation in one.generations]


def predicted(replay: Scenario, generation: str) -> frozenset[Word]:
    """The words that a scenario predicts there; none where it is not run."""
    expectation = expectations(replay).get(generation)
    return frozenset(expectation.outcome) if expectation else frozenset()


def agrees(cell: str, replay: Scenario, generation: str) -> bool:
    """Whether what a scenario predicts on a generation is what the matrix knows."""
    letters = {LETTERS.get(word, word) for word in predicted(replay, generation)}
    if cell == NONE:
        return letters <= {"S"}
    if cell == "regress":
        return letters == {"S"} and _awaits_a_regress(_performed(replay, generation))
    if cell == "found":
        return letters == {"w"} and any(
            step.consume.expect == "truncated" for step in _performed(replay, generation) if step.consume
        )
    return letters == set(cell.split("+"))


def _performed(replay: Scenario, generation: str) -> list[Step]:
    steps = replay.schedule or ()
    return [steps[index] for index in plan(replay, generation=generation).schedule.steps]


def _awaits_a_regress(steps: list[Step]) -> bool:
    """Whether the schedule sees a later leader whose watermark is below what has been read already."""
    read = 0
    for step in steps:
        if not step.until:
            continue
        for replica in step.until.replicas:
            if replica.role == "leader" and replica.leader_epoch and (replica.high_watermark or 0) < read:
                return True
        read = step.until.polled or read
    return False


def differing_offsets(expectation: Expectation) -> list[int]:
    """The offsets at which the final logs of an expectation differ; all of these begin at 0."""
    logs = [spelled_out(entries) for replicas in expectation.final_logs.values() for entries in replicas.values()]
    longest = max(len(log) for log in logs)
    return [offset for offset in range(longest) if len({log[offset : offset + 1] for log in logs}) > 1]


def cells() -> Iterator[tuple[Row, str, Scenario]]:
    """Every cell of the matrix, once for each scenario that replays it."""
    for row in rows():
        for name in row.scenarios:
            replay = scenario.load(name)
            for generation in GENERATIONS:
                yield row, generation, replay


# --------------------------------------------------------------------------------------------------------- document


def section() -> str:
    """The section of ``docs/scenarios.md``."""
    parts = [TITLE, _INTRODUCTION, *_matrix(), "", _DEVIATIONS, *_table()]
    return "\n".join(parts) + "\n"


def section_of(document: str) -> str:
    """The section as a document has it, up to the next one; empty without it."""
    _, title, rest = document.partition(TITLE)
    return title + rest.partition("\n## ")[0]


def _matrix() -> Iterator[str]:
    yield f"| entry | {' | '.join(GENERATIONS)} | replayed by |"
    yield "|---" * (len(GENERATIONS) + 2) + "|"
    for row in rows():
        known = (row.cells[name] + (" ≠" if deviations_of(row, name) else "") for name in GENERATIONS)
        yield f"| {row.name} | {' | '.join(known)} | {', '.join(f'`{name}`' for name in row.scenarios)} |"


def _table() -> Iterator[str]:
    yield "| entry | generations | known | predicted | because |"
    yield "|---|---|---|---|---|"
    cells_of = {row.name: row.cells for row in rows()}
    for one in deviations():
        known = ", ".join(dict.fromkeys(cells_of[one.row][name] for name in one.generations))
        words = ", ".join(f"`{word}`" for word in Word if word in one.predicted)
        yield f"| {one.row} | {one.ranges} | {known} | {words} | {one.reason} |"


_INTRODUCTION = """\
What the scenarios predict is held against what is known from elsewhere: a matrix of the best documented losses and
the eight generations, written down from Kafka's sources, its issues and small models of its replication before the
scenarios were played. L: an acknowledged record is lost; D: replicas diverge; K: a replica is stuck; X: a broker
exits; U: no leader for the time being, and nothing is lost; w: a weak or documented loss; S: safe; skip: a group
skips records; found: a group finds that the log was truncated; regress: a leader's watermark is below what was read,
and nothing is lost; -: that generation does not know what the loss takes. A cell with ≠ deviates.

Not all of it was computed: column 3.7 is 2.8 with the watermark frozen below the minimum, and A07, B03, B07, E02, A18
with clean elections, B11 on 3.7 and 4.1, B21 on all but 0.10 and 2.1, and C02 were concluded from what is written
about them.
"""

_DEVIATIONS = """\
The deviations were found by playing the scenarios. Most are of one kind: the matrix counts what becomes of the
replicas, and seawall also what becomes of every acknowledged record, of which it says whether the configuration
promised to keep it.
"""
