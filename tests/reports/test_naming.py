"""Names of records: as the scenario calls them, or by who sent them, with the value behind the name."""

from __future__ import annotations

import re

import pytest

from reports.naming import NO_NAMES, Names, ordinal

NAMES = Names({(4 << 32): "m4"}, {4, 7})
TWELFTH = (7 << 32) + 11


def test_a_record_is_called_as_the_scenario_does_or_by_who_sent_it() -> None:
    assert NAMES.long(4 << 32) == "m4"
    assert (NAMES.long(TWELFTH), NAMES.short(TWELFTH)) == ("process 7's 12th send", "p7·12")
    assert NAMES.title(TWELFTH) == f"process 7's 12th send, value {TWELFTH}"


@pytest.mark.parametrize("value", [7, 5 << 32, -1])
def test_a_value_that_no_process_of_the_run_sent_is_itself(value: int) -> None:
    assert NAMES.long(value) == NAMES.short(value) == str(value)
    assert NAMES.title(value) == ""


def test_a_sentence_names_its_records_and_stays_escaped() -> None:
    said = NAMES.words(f"Value {4 << 32} was <lost>. The log holds value {TWELFTH}; the send of value {TWELFTH} ended.")
    words = re.sub("</?span.*?>", "", said)
    assert words == (
        "Record m4 was &lt;lost&gt;. The log holds process 7&#39;s 12th send; process 7&#39;s 12th send ended."
    )
    assert f'title="process 4&#39;s 1st send, value {4 << 32}"' in said


def test_without_names_a_sentence_is_as_it_was() -> None:
    assert NO_NAMES.words(f"Value {TWELFTH} went.") == f"Value {TWELFTH} went."


@pytest.mark.parametrize(("number", "word"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (1012, "1,012th")])
def test_ordinals(number: int, word: str) -> None:
    assert ordinal(number) == word
