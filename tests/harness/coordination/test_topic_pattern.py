"""Patterns of topic names: what they match, and that none takes long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.coordination.topic_pattern import BadPattern, TopicPattern

PIECES = ["a", "b", ".", "[ab]", "[^a]", r"\w", r"\.", "a*", ".*", "b?", "[ab]+", "|", "(a|b.)*", "(?:a)?", "^", "$"]


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=6), name=st.text("ab.c", max_size=6))
def test_a_pattern_matches_what_python_says(pieces: list[str], name: str) -> None:
    text = "".join(pieces)
    assert TopicPattern(text).matches(name) == (re.fullmatch(text, name) is not None)


def test_anchors_at_the_ends_change_nothing() -> None:
    assert TopicPattern("^orders-.*$").matches("orders-1")
    assert not TopicPattern("^orders").matches("orders-1")
    assert TopicPattern(r"a\$|b").matches("a$")


@pytest.mark.parametrize(
    "text", ["(a", "a)", "(?i)a", "a{3}", "[a", "*", r"\b", r"a\1", "a**", "x" * 1_025, "(" * 21 + ")" * 21]
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(BadPattern):
        TopicPattern(text)


def test_a_pattern_that_python_would_take_for_ever_over_is_quick() -> None:
    assert not TopicPattern("a*" * 300 + "b").matches("a" * 249)
    assert not TopicPattern("((a+)+)+b").matches("a" * 249)
    assert TopicPattern("a|" * 500 + "b").matches("b")
