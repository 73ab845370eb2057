"""``docs/seeds.md`` is whole and current."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.seeds import table

ROWS_PER_TEXT = (21, 18, 7, 15, 12)


def test_every_row_of_every_text_is_there() -> None:
    rows = [[row.id for row in rows] for rows in table.texts().values()]
    assert rows == [[f"S{text}-{row}" for row in range(1, count + 1)] for text, count in enumerate(ROWS_PER_TEXT)]


def test_every_row_has_a_test_and_every_test_a_row() -> None:
    shown = Counter(test.row for test in table.tests())
    declared = {row.id for rows in table.texts().values() for row in rows}
    assert declared - set(shown) == set()
    assert set(shown) - declared == set()


def test_every_test_is_in_the_file_of_its_text() -> None:
    assert not [test for test in table.tests() if test.file != f"test_text_{test.row[1]}.py"]


def test_every_row_is_replayed_by_scenarios_that_exist_or_says_why_not() -> None:
    known = set(table.catalogued())
    rows = [row for rows in table.texts().values() for row in rows]
    assert not [(row.id, set(row.replay) - known) for row in rows if set(row.replay) - known]
    assert not [row.id for row in rows if bool(row.replay) == bool(row.why)]


def test_the_document_is_what_the_rows_and_the_tests_say(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite"):
        table.DOCUMENT.write_text(table.document())
    assert table.document() == table.DOCUMENT.read_text()
