"""``docs/seeds.md`` as a function of ``rows.yaml`` and of the names of the tests beside it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from harness.replication.knobs import GENERATIONS
from harness.scenario import Scenario, shipped

FOLDER = Path(__file__).parent
DOCUMENT = FOLDER.parents[1] / "docs" / "seeds.md"

_TEST = re.compile(r"test_s(\d+)_(\d+)_(\w+)")


@dataclass(frozen=True)
class Test:
    """One test function: the row it shows, the file it is in, and what it says."""

    row: str
    file: str
    sentence: str


@dataclass(frozen=True)
class Row:
    """One statement of a text; see ``rows.yaml``."""

    id: str
    says: str
    kafka: str
    wrong: bool
    replay: tuple[str, ...]
    why: str


def texts() -> dict[str, list[Row]]:
    """The rows of each text, by its title."""
    declared = yaml.safe_load((FOLDER / "rows.yaml").read_text())
    return {text["title"]: [_row(name, fields) for name, fields in text["rows"].items()] for text in declared["texts"]}


def _row(name: str, fields: dict[str, Any]) -> Row:
    return Row(
        name,
        fields.pop("says").strip(),
        fields.pop("kafka").strip(),
        wrong=fields.pop("wrong", False),
        replay=tuple(fields.pop("replay")),
        why=fields.pop("why", ""),
    )


def tests() -> list[Test]:
    """Every test of this folder that is named for a row, in order."""
    return [
        Test(f"S{found[1]}-{found[2]}", path.name, _sentence(found[3]))
        for path in sorted(FOLDER.glob("test_text_*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and (found := _TEST.fullmatch(node.name))
    ]


def _sentence(name: str) -> str:
    """What a test's name says; the generations' names have dots."""
    sentence = name.replace("_s_", "'s ").replace("_", " ")
    for generation in sorted(GENERATIONS, key=len, reverse=True):
        sentence = re.sub(rf"\b{generation.replace('.', ' ')}\b", generation, sentence)
    return sentence


@cache
def catalogued() -> dict[str, list[Scenario]]:
    """The scenarios of each entry of the catalogue: under ``A01`` the one whose ``catalogue`` is ``A01/unclean``."""
    found: dict[str, list[Scenario]] = {}
    for scenario in shipped():
        if scenario.catalogue is not None:
            found.setdefault(scenario.catalogue.partition("/")[0], []).append(scenario)
    return found


def document() -> str:
    """The text of ``docs/seeds.md``."""
    shown = tests()
    parts = [_INTRODUCTION]
    for title, rows in texts().items():
        lines = [_line(row, [test for test in shown if test.row == row.id]) for row in rows]
        parts.append("\n".join([f"## {title}\n", *_HEAD, *lines]) + "\n")
    return "\n".join(parts)


def _line(row: Row, shown: list[Test]) -> str:
    links = "<br>".join(f"[{test.sentence}](../tests/seeds/{test.file})" for test in shown)
    name = f"{row.id} ⚠" if row.wrong else row.id
    return f"| {name} | {row.says} | {row.kafka} | {links} | {', '.join(row.replay) or row.why} |"


_HEAD = ("| row | the text says | Kafka does | shown by | replayed by |", "|---|---|---|---|---|")

_INTRODUCTION = """\
# The five texts, row by row

Five texts that people learn Kafka's replication from: a lecture on the high watermark and the leader epoch (0), a walk
through the code (1), a short account of how a record gets lost (2), a reading of KIP-101 with an incident of full
disks (3), and an article on Kafka and the CAP theorem (4). Each row is one thing that a text says, what Kafka does,
the tests that show it, and the scenarios in which it happens. ⚠ marks what is wrong in the text, or true of some
releases only; where a text's rule can be played as a knob, a test shows the harm that it does.

The tests of row S0-12 are called `test_s0_12_...`: `pytest tests/seeds -k s0_12` runs them. The scenarios of A01 are
run by `seawall scenario run A01`. What is called 0.10, 2.8 or 4.1 is a [generation](generations.md).

This page is generated from `tests/seeds/rows.yaml` and the tests' names; `pytest tests/seeds --rewrite` writes it.
"""
