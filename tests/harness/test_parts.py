from __future__ import annotations

import pytest

from harness.parts import Parts, named_by


def half(number: int) -> float:
    return number / 2


def labelled(label: str, *, number: int) -> str:
    return f"{label}{number}"


class Rule:
    def find(self, label: str) -> str:
        return label * 2


def test_a_rule_is_given_the_parts_that_its_parameters_name_and_no_other() -> None:
    parts = Parts(4, "x", [1])
    assert parts.given_to(half) == 2
    assert parts.given_to(labelled) == "x4"
    assert parts.given_to(Rule().find) == "xx"
    assert named_by(labelled) == {"label": str, "number": int}


def test_a_rule_that_names_what_there_is_not_is_refused() -> None:
    with pytest.raises(KeyError):
        Parts("x").given_to(half)
    with pytest.raises(KeyError):
        named_by(lambda anything: anything)


def test_two_parts_of_a_type_are_refused() -> None:
    with pytest.raises(AssertionError):
        Parts(1, 2)


def test_more_parts_stand_beside_those_that_there_are() -> None:
    parts = Parts("x")
    assert parts.beside(4).given_to(labelled) == "x4"
    assert list(parts) == ["x"]
