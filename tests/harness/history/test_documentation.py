from __future__ import annotations

from pathlib import Path

import pytest

from harness.history.schema import EVERY_TABLE, FORMAT_VERSION, Table

DOCUMENT = Path(__file__).parents[3] / "docs" / "history.md"


def section(table: Table) -> str:
    """What ``docs/history.md`` must say of a table; paste it there when this test asks for it."""
    place = table.path if table.path.endswith(".parquet") else f"{table.path}/part-*.parquet"
    lines = [f"### {table.name}", "", f"`{place}`", "", "| column | type | null | meaning |", "|---|---|---|---|"]
    for column in table.columns:
        null = "yes" if column.nullable else "no"
        lines.append(f"| `{column.name}` | {column.type} | {null} | {column.meaning} |")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", sorted(EVERY_TABLE))
def test_the_documentation_of_a_table_is_that_of_its_schema(name: str) -> None:
    assert section(EVERY_TABLE[name]) in DOCUMENT.read_text(), section(EVERY_TABLE[name])


def test_the_documentation_is_of_this_format() -> None:
    assert f"format {FORMAT_VERSION}" in DOCUMENT.read_text()
