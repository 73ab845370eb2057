from __future__ import annotations

import re
from pathlib import Path

from checkers import CONCLUSIONS, PROMISES
from checkers.promises import KINDS
from harness.checker import Outcome, Verdict
from harness.findings import KEPT_PER_GROUP

DOCUMENT = (Path(__file__).parents[2] / "docs" / "anomalies.md").read_text()


def test_every_kind_is_documented_once_and_no_other() -> None:
    assert sorted(re.findall(r"^### (\S+)$", DOCUMENT, re.MULTILINE)) == sorted(KINDS)


def test_every_kind_is_documented_under_its_promise() -> None:
    for promise, kinds in (*((p, p.KINDS) for p in PROMISES), *((c, c.KINDS) for c in CONCLUSIONS)):
        name = str(getattr(promise, "__name__", "")).removeprefix("checkers.")
        for kind in kinds:
            assert re.search(rf"### {kind.name}\n\n\*Promise: `{name}`\.\*", DOCUMENT), kind.name


def test_every_verdict_and_outcome_is_documented() -> None:
    for word in (*Verdict, *Outcome):
        assert f"| `{word}` |" in DOCUMENT
    assert f"The first {KEPT_PER_GROUP} of each kind" in DOCUMENT


IDS = ["C1", "C1b", *(f"C{n}" for n in range(2, 17)), "R1", "R1b", *(f"R{n}" for n in range(2, 13)),
       *(f"T{n}" for n in range(1, 15))]  # fmt: skip


def invariants() -> dict[str, tuple[list[str], list[str], str]]:
    """By id: its kinds, their modules, and the sentence that stands there instead."""
    rows = re.findall(r"^\| ([CRT]\d+b?) \| .* \| (.*) ?\| (.*) \|$", DOCUMENT, re.MULTILINE)
    return {name: (re.findall(r"`(.*?)`", kinds), re.findall(r"`(.*?)`", said), said) for name, kinds, said in rows}


def test_every_invariant_is_some_kind_or_says_why_it_is_none() -> None:
    known = invariants()
    assert list(known) == IDS
    for name, (kinds, _, said) in known.items():
        assert kinds or re.search(r"^\*(Not decided|No verdict).*: .*\*$", said), name


def test_every_kind_is_about_some_invariant_and_in_the_module_that_is_named() -> None:
    homes = {
        kind.name: str(getattr(promise, "__name__", "")).removeprefix("checkers.")
        for promise, kinds in (*((p, p.KINDS) for p in PROMISES), *((c, c.KINDS) for c in CONCLUSIONS))
        for kind in kinds
    }
    decided = {name: (kinds, modules) for name, (kinds, modules, _) in invariants().items() if kinds}
    for name, (kinds, modules) in decided.items():
        assert modules == list(dict.fromkeys(homes[kind] for kind in kinds)), name
    assert {kind for kinds, _ in decided.values() for kind in kinds} == set(homes)
