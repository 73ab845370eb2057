"""Several workloads at once: what they are together, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import workloads
from harness.errors import UsageError
from harness.workload import WorkloadParameters


def several(*parts: dict[str, Any], **fields: Any) -> WorkloadParameters:
    return workloads.parse("several_workloads", {"parts": list(parts), **fields})


STEADY = {"name": "unique_sends", "rate": 20, "acks": ["all", 1], "delivery_timeout_s": 3}
PIPELINED = {"name": "pipelined_sends", "acks": [0], "idempotent": False, "size_up_to": 700, "delivery_timeout_s": 1}


def test_a_mix_asks_for_what_its_parts_ask_for() -> None:
    both = several(STEADY, PIPELINED, size=10)
    assert both.asked_acks == {-1, 0, 1}
    assert (both.answered_within_s, both.largest_size, both.has_background_load) == (3, 700, True)


def test_its_members_are_out_when_those_of_every_part_are() -> None:
    group = {"name": "consumer_groups", "session_timeout_s": 2, "poll_timeout_s": 3}
    assert several(STEADY, group).held_for_s == 3
    assert several(STEADY).held_for_s == 0


def test_a_promise_that_one_part_gives_up_is_given_up() -> None:
    numbered = {"name": "pipelined_sends"}
    assert several(numbered).appends_once
    assert several(numbered).numbers_records
    assert not several(numbered, {**STEADY, "acks": ["all"]}).appends_once
    assert not several(numbered, STEADY).numbers_records


def test_a_part_without_load_asks_for_nothing() -> None:
    idle = {"name": "unique_sends", "acks": [1]}
    assert several({"name": "pipelined_sends"}, idle).asked_acks == {-1}
    assert several({"name": "pipelined_sends"}, idle).appends_once


def test_without_numbers_no_part_numbers() -> None:
    plain = several({"name": "pipelined_sends"}, STEADY).without_numbers()
    assert not plain.appends_once
    assert plain == workloads.parse("several_workloads", plain.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ([], "parts"),
        ([{"rate": 5}], "a part has no name"),
        ([STEADY, STEADY], "'unique_sends' is there twice"),
        ([{"name": "several_workloads", "parts": [STEADY]}], "'several_workloads' is there twice, or within itself"),
        ([{"name": "unique_send"}], "parts: unknown workload 'unique_send'; did you mean"),
        ([{"name": "unique_sends", "members": 2}], "parts: unique_sends: unknown key 'members'"),
    ],
)
def test_a_mix_that_cannot_be_is_refused_in_a_sentence(parts: list[dict[str, Any]], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        several(*parts)
    assert sentence in str(refused.value)
