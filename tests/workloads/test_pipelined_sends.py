"""Pipelined sends: what may be written about them, and what they do that is theirs alone."""

from __future__ import annotations

from typing import Any

import pytest

import workloads
from harness.errors import UsageError
from harness.runner import plan
from harness.scenario import load
from workloads.pipelined_sends import PipelinedSendsParameters


def parameters(**written: Any) -> PipelinedSendsParameters:
    parsed = workloads.parse("pipelined_sends", written)
    assert isinstance(parsed, PipelinedSendsParameters)
    return parsed


def test_a_rate_is_a_number_or_as_much_as_there_is_room_for() -> None:
    assert parameters(rate=7.5).rate == 7.5
    assert parameters(rate="max").rate == parameters().rate == "max"


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ({"rate": 0}, "workload.rate"),
        ({"rate": "most"}, "workload.rate"),
        ({"in_flight": 6}, "workload.in_flight"),
        ({"compression": ["lz5"]}, "workload.compression"),
        ({"size": 100, "size_up_to": 50}, "size_up_to is 50, less than size, 100"),
    ],
)
def test_what_makes_no_sense_is_named(written: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        parameters(**written)


def test_producers_take_turns_with_acks_and_codecs_and_number_what_waits_for_all() -> None:
    ours = parameters(acks=["all", 1], compression=["none", "lz4", "zstd"], retries=3)
    manners = [ours.manner_of(producer) for producer in range(4)]
    assert [manner.compression for manner in manners] == ["none", "lz4", "zstd", "none"]
    assert [manner.idempotent for manner in manners] == [True, False, True, False]
    assert [manner.retries for manner in manners] == [1000, 3, 1000, 3]
    assert ours.asked_acks == {-1, 1}


@pytest.mark.parametrize(
    ("written", "once"),
    [
        ({}, True),
        ({"idempotent": False}, False),
        ({"idempotent": False, "acks": [1]}, True),
        ({"idempotent": False, "acks": [1], "retries": 1}, False),
        ({"acks": ["all", 1], "retries": 1}, False),
        ({"acks": ["all"], "retries": 1}, True),
    ],
)
def test_who_sends_again_without_numbers_may_store_a_record_twice(written: dict[str, Any], once: bool) -> None:
    assert parameters(**written).appends_once is once


def test_a_codec_that_no_producer_would_use_is_refused() -> None:
    overrides = {
        "workload.name": "pipelined_sends",
        "workload.producers": "2",
        "workload.compression": "[none, gzip, lz4]",
    }
    with pytest.raises(UsageError, match=r"compression lists 'lz4', which none of 2 producer\(s\) uses"):
        plan(load("random-chaos"), "builtin", overrides=overrides)
