from __future__ import annotations

import re
from pathlib import Path

from checkers import CONCLUSIONS, PROMISES
from harness.checker import Outcome, Verdict
from spark_analysis.answer import KEPT_PER_GROUP

DOCUMENT = (Path(__file__).parents[2] / "docs" / "anomalies.md").read_text()


def test_every_kind_is_documented_once_and_no_other() -> None:
    assert sorted(re.findall(r"^### (\S+)$", DOCUMENT, re.MULTILINE)) == sorted(
        kind for kinds in (*(p.KINDS for p in PROMISES), *(c.KINDS for c in CONCLUSIONS)) for kind in kinds
    )


def test_every_kind_is_documented_under_its_promise() -> None:
    for promise, kinds in (*((p, p.KINDS) for p in PROMISES), *((c, c.KINDS) for c in CONCLUSIONS)):
        name = str(getattr(promise, "__name__", "")).removeprefix("checkers.")
        for kind in kinds:
            assert re.search(rf"### {kind}\n\n\*Promise: `{name}`\.\*", DOCUMENT), kind


def test_every_verdict_and_outcome_is_documented() -> None:
    for word in (*Verdict, *Outcome):
        assert f"| `{word}` |" in DOCUMENT
    assert f"The first {KEPT_PER_GROUP} of each kind" in DOCUMENT
