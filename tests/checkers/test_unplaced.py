"""Acknowledgements that do not say where the record lies."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.completeness.history_is_complete import unplaced
from harness.history.run_directory import Manifest

NOWHERE = {"acked_nowhere": 3}


def manifest(**configuration: Any) -> Manifest:
    return Manifest("r", "story", 1, "2025-01-01T00:00:00+00:00", configuration=configuration)


def scheduled(**send: Any) -> dict[str, Any]:
    return {"scenario": {"schedule": [{"wait_s": 1}, {"send": {"per_partition": 2, **send}}]}}


@pytest.mark.parametrize("more", [{}, {"scenario": {"schedule": None}}, scheduled(), scheduled(idempotent=False)])
def test_acknowledgements_without_an_offset_make_a_run_of_a_target_invalid(more: dict[str, Any]) -> None:
    [said] = unplaced(manifest(target="builtin", **more), NOWHERE)
    assert said.startswith("3 acknowledgements of acks=all or acks=1 name no offset")


@pytest.mark.parametrize(
    "configuration",
    [{}, {"imported": {}}, {"target": "builtin", **scheduled(idempotent=True)}],
    ids=["of nobody knows what", "imported", "with batches of one producer side by side"],
)
def test_where_an_offset_may_be_missing_it_is_not_missed(configuration: dict[str, Any]) -> None:
    assert not list(unplaced(manifest(**configuration), NOWHERE))
    assert not list(unplaced(manifest(target="builtin"), {"acked_nowhere": 0}))
