from __future__ import annotations

import re
from pathlib import Path

import pytest

from checkers import CONCLUSIONS, PROMISES, check
from checkers.consequences import CONSEQUENCE_OF
from checkers.severity import RELIES_ON
from tests.checkers.cases import Case
from tests.checkers.evidence_cases import CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_reference_agrees_that(case: Case, tmp_path: Path) -> None:
    path = case.story("r").write(tmp_path / "r", **case.manifest)
    [verdict] = check([path], engine="reference")
    assert sorted((a.kind, str(a.verdict), a.offset or 0) for a in verdict.anomalies) == sorted(
        (kind, own, offset or 0) for kind, own, offset in case.anomalies
    )
    assert verdict.outcome is case.outcome, verdict.reasons
    assert re.search(case.reason, "\n".join(verdict.reasons))


def test_every_kind_is_found_in_some_case() -> None:
    found = {kind for case in CASES for kind, _, _ in case.anomalies}
    assert found == set(every_kind())


def every_kind() -> list[str]:
    return [kind for kinds in (*(p.KINDS for p in PROMISES), *(c.KINDS for c in CONCLUSIONS)) for kind in kinds]


def test_tables_about_kinds_name_only_kinds() -> None:
    kinds = every_kind()
    assert len(kinds) == len(set(kinds))
    assert set(RELIES_ON) | set(CONSEQUENCE_OF) | {k for ks in CONSEQUENCE_OF.values() for k in ks} <= set(kinds)
    for kind, causes in CONSEQUENCE_OF.items():
        assert all(kinds.index(cause) < kinds.index(kind) for cause in causes), "causes are judged first"
