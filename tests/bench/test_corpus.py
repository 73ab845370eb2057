from __future__ import annotations

from typing import Any

import pytest

from tests.bench.corpus import differing

BEFORE = {"run": {"outcome": "pass", "reasons": ["a"], "anomalies": [{"kind": "stuck", "why": "x", "offset": 1}]}}


def changed(**parts: Any) -> dict[str, Any]:
    return {"run": {**BEFORE["run"], **parts}}


@pytest.mark.parametrize(
    "after",
    [
        changed(reasons=["b"]),
        changed(anomalies=[{"kind": "stuck", "why": "y", "offset": 1}]),
    ],
    ids=str,
)
def test_only_prose_may_differ(after: dict[str, Any]) -> None:
    assert not list(differing("engine", BEFORE, after))


@pytest.mark.parametrize(
    ("after", "line"),
    [
        (changed(outcome="invalid"), "engine: run: outcome: 'pass' is 'invalid' now"),
        (changed(reasons=["a", "b"]), "engine: run: reasons: [True] is [True, True] now"),
        (
            changed(anomalies=[{"kind": "stuck", "why": "", "offset": 1}]),
            "engine: run: anomalies[0].why: True is False now",
        ),
        (
            changed(anomalies=[{"kind": "stuck", "why": "x", "offset": 2}]),
            "engine: run: anomalies[0].offset: 1 is 2 now",
        ),
        (changed(more=1), "engine: run: more: None is 1 now"),
    ],
    ids=str,
)
def test_whatever_else_differs_is_listed(after: dict[str, Any], line: str) -> None:
    assert list(differing("engine", BEFORE, after)) == [line]


def test_a_run_that_is_missing_is_listed() -> None:
    assert len(list(differing("engine", BEFORE, {}))) == 1
