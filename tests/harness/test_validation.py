from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict

from harness.errors import UsageError
from harness.spelling import closest
from harness.validation import validated


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    free_bytes: int = 0
    name: str | None = None


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    pair: tuple[int, int] = (0, 0)
    needed: str


def refusal(data: object, path: str = "") -> str:
    with pytest.raises(UsageError) as refused:
        validated(Outer, data, path)
    return str(refused.value)


def test_an_unknown_key_is_named_with_its_place_and_the_key_that_was_probably_meant() -> None:
    assert refusal({"needed": "x", "many": [{}, {"free_byte": 3}]}) == (
        "many[1]: unknown key 'free_byte'; did you mean 'free_bytes'?"
    )


def test_the_path_given_stands_in_front() -> None:
    assert refusal({}, "faults[2]") == "faults[2]: 'needed' is missing."


def test_a_misspelled_key_is_not_called_missing() -> None:
    assert refusal({"neded": "x"}) == "the scenario: unknown key 'neded'; did you mean 'needed'?"


def test_a_missing_key_is_named() -> None:
    assert refusal({}) == "the scenario: 'needed' is missing."


def test_text_is_no_number_even_if_it_looks_like_one() -> None:
    assert refusal({"needed": "x", "inner": {"free_bytes": "3"}}).startswith("inner.free_bytes: '3' is refused")


def test_a_list_may_stand_for_a_tuple() -> None:
    assert validated(Outer, {"needed": "x", "pair": [1, 2]}, "").pair == (1, 2)


def test_a_scenario_that_is_no_mapping_is_refused() -> None:
    assert refusal([1]).startswith("the scenario: [1] is refused")


def test_a_word_close_to_nothing_gets_the_whole_list() -> None:
    assert closest("zzz", ["kill", "pause"]) == "known: kill, pause."
