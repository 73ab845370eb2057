from __future__ import annotations

import re
from pathlib import Path

import pytest

from checkers import CONCLUSIONS, PROMISES, check
from checkers.promises import KINDS
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
    assert found == set(KINDS)


def test_kinds_have_names_of_their_own_and_follow_from_kinds_that_are_judged_first() -> None:
    kinds = [*(p.KINDS for p in PROMISES), *(c.KINDS for c in CONCLUSIONS)]
    names = [kind.name for ours in kinds for kind in ours]
    assert len(names) == len(set(names))
    for kind in KINDS.values():
        assert all(names.index(cause) < names.index(kind.name) for cause in kind.follows_from), kind.name
