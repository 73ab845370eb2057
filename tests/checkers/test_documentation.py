from __future__ import annotations

import re

import pytest

from checkers.registry import KINDS
from harness.checker import Outcome, Verdict
from harness.findings import KEPT_PER_GROUP
from tests.checkers.kinds_table import INVARIANT, PAGE, homes, table, with_excuses, with_invariants, with_table

DOCUMENT = PAGE.read_text()


def test_the_table_of_kinds_is_that_of_their_records(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite"):
        PAGE.write_text(with_table(PAGE.read_text()))
    assert PAGE.read_text() == with_table(PAGE.read_text())


def test_the_table_of_excuses_is_that_of_their_records(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite"):
        PAGE.write_text(with_excuses(PAGE.read_text()))
    assert PAGE.read_text() == with_excuses(PAGE.read_text())


def test_the_kinds_of_the_invariants_are_those_of_their_records(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite"):
        PAGE.write_text(with_invariants(PAGE.read_text()))
    assert PAGE.read_text() == with_invariants(PAGE.read_text())


def test_every_kind_has_a_row_with_its_promise() -> None:
    rows = re.findall(r"^\| \**([\w-]+)\**(?: `(\w+)`)? \|", table(), re.MULTILINE)
    told = {kind: module or kind.replace("-", "_") for kind, module in rows if kind not in ("kind", "---")}
    assert told == {name: module for name, (module, _) in homes().items()}
    assert sorted(told) == sorted(KINDS)


def test_a_kind_has_one_section_at_most() -> None:
    sections = re.findall(r"^### (\S+)$", DOCUMENT, re.MULTILINE)
    assert len(set(sections)) == len(sections)
    assert set(sections) <= set(KINDS)


def test_every_verdict_and_outcome_is_documented() -> None:
    for word in (*Verdict, *Outcome):
        assert f"| `{word}` |" in DOCUMENT
    assert f"The first {KEPT_PER_GROUP} of each kind" in DOCUMENT


IDS = ["C1", "C1b", *(f"C{n}" for n in range(2, 22)), "R1", "R1b", *(f"R{n}" for n in range(2, 13)),
       *(f"T{n}" for n in range(1, 15))]  # fmt: skip


def test_every_invariant_is_some_kind() -> None:
    assert [name for _, name, kinds in INVARIANT.findall(DOCUMENT) if kinds] == IDS


def test_every_kind_is_about_some_invariant() -> None:
    assert [kind.name for kind in KINDS.values() if not kind.invariants or not set(kind.invariants) <= set(IDS)] == []
