"""Elements as text."""

from __future__ import annotations

from markupsafe import Markup

from reports.svg import cross, number, steps, tag, text


def test_attributes_and_text_are_escaped() -> None:
    assert tag("text", "<b>&", aria_label='"<') == '<text aria-label="&#34;&lt;">&lt;b&gt;&amp;</text>'


def test_markup_is_not_escaped_twice() -> None:
    assert tag("g", Markup("<path/>"), title="a < b") == "<g><title>a &lt; b</title><path/></g>"


def test_attributes_that_are_none_are_left_out() -> None:
    assert tag("rect", x=1.25, class_=None) == '<rect x="1.2"/>'


def test_numbers_carry_at_most_one_decimal() -> None:
    assert [number(3.0), number(3.14), number(-0.5), number(100.0)] == ["3", "3.1", "-0.5", "100"]


def test_a_step_line_holds_each_value_until_the_next() -> None:
    assert steps([(0, 5), (2, 3)], until=9) == "M0 5H2V3H9"


def test_a_cross_and_a_word_stand_where_they_should() -> None:
    assert cross(5, 5, 2) == "M3 3L7 7M3 7L7 3"
    assert text(1, 2, "b0", "label") == '<text x="1" y="2" class="label">b0</text>'
