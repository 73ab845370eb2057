"""Acknowledgements that do not say where the record lies."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.completeness.history_is_complete import placed_anywhere, unplaced
from harness.history.run_directory import Manifest

NOWHERE = {"acked_nowhere": 3}


def manifest(**configuration: Any) -> Manifest:
    return Manifest("r", "story", 1, "2025-01-01T00:00:00+00:00", configuration=configuration)


def scheduled(**send: Any) -> dict[str, Any]:
    return {"scenario": {"schedule": [{"wait_s": 1}, {"send": {"per_partition": 2, **send}}]}}


def loaded(**parameters: Any) -> dict[str, Any]:
    return {"workload": {"name": "pipelined_sends", **parameters}}


IN_TURN: tuple[dict[str, Any], ...] = (
    {},
    {"scenario": {"schedule": None}},
    scheduled(),
    scheduled(idempotent=False),
    {"workload": {"name": "unique_sends"}},
    loaded(in_flight=1),
    loaded(idempotent=False),
)


@pytest.mark.parametrize("more", IN_TURN)
def test_acknowledgements_without_an_offset_make_a_run_of_a_target_invalid(more: dict[str, Any]) -> None:
    [said] = unplaced(manifest(target="builtin", **more), NOWHERE)
    assert said.startswith("3 acknowledgements of acks=all or acks=1 name no offset")


@pytest.mark.parametrize(
    "configuration",
    [{}, {"imported": {}}, {"target": "builtin", **scheduled(idempotent=True)}, {"target": "builtin", **loaded()}],
    ids=["of no known target", "imported", "scheduled batches side by side", "pipelined batches"],
)
def test_where_an_offset_may_be_missing_it_is_not_missed(configuration: dict[str, Any]) -> None:
    assert not list(unplaced(manifest(**configuration), NOWHERE))
    assert not list(unplaced(manifest(target="builtin"), {"acked_nowhere": 0}))


def test_what_need_not_name_an_offset_and_does_not_is_said() -> None:
    [said] = placed_anywhere(manifest(target="builtin", **loaded()), NOWHERE)
    assert said.startswith("3 acknowledgements name no offset")
    assert not list(placed_anywhere(manifest(target="builtin", **loaded()), {"acked_nowhere": 0}))
    assert not list(placed_anywhere(manifest(target="builtin"), NOWHERE))
