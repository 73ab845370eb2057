from __future__ import annotations

import re

import pytest

from harness.errors import ExitCode
from tests.docs.reference_pages import REWRITE, ROOT, pages


@pytest.mark.parametrize("name", pages())
def test_a_page_of_the_reference_is_what_the_code_says(name: str, pytestconfig: pytest.Config) -> None:
    place, page = ROOT / "docs" / name, pages()[name]()
    if pytestconfig.getoption("rewrite"):
        place.write_text(page)
    assert place.read_text() == page, f"{REWRITE} writes docs/{name}"


@pytest.mark.parametrize("page", ["cli.md", "troubleshooting.md"])
def test_every_exit_code_is_explained_and_no_other(page: str) -> None:
    rows = re.findall(r"^\| (\d+) \|", (ROOT / "docs" / page).read_text(), re.MULTILINE)
    assert {int(code) for code in rows} == set(map(int, ExitCode))
