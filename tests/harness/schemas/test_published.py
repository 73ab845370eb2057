"""``docs/schemas``: every file is what ``seawall schema`` prints, and describes every key."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from harness.cli.schema import SCHEMAS, Document
from harness.errors import ExitCode
from tests.harness.cli.calling import Seawall
from tests.harness.cli.conftest import seawall as seawall  # noqa: PLC0414 - a fixture
from tests.harness.schemas.published import DIRECTORY, printed, undescribed


def test_every_published_schema_is_printed_by_the_command() -> None:
    assert sorted(path.name for path in DIRECTORY.iterdir()) == sorted(printed(one)["$id"] for one in Document)


@pytest.mark.parametrize("document", Document)
def test_a_published_schema_is_the_one_of_the_code(document: Document, request: pytest.FixtureRequest) -> None:
    from harness.runner.scenario_schema import schema

    text = schema() if document is Document.SCENARIO else SCHEMAS[document]()
    path = DIRECTORY / json.loads(text)["$id"]
    if request.config.getoption("--rewrite"):
        path.write_text(text)
    assert path.read_text() == text, "pytest tests/harness/schemas --rewrite writes it anew"


@pytest.mark.parametrize("document", Document)
def test_a_schema_is_one_and_describes_every_key(document: Document) -> None:
    Draft202012Validator.check_schema(printed(document))
    assert list(undescribed(printed(document))) == []


def test_the_command_prints_a_schema(seawall: Seawall) -> None:
    said = seawall("schema", "verdict")
    assert (said.code, json.loads(said.out)["$id"]) == (ExitCode.PASS, "verdict-1.json")


def test_a_document_without_a_schema_is_refused(seawall: Seawall) -> None:
    said = seawall("schema", "verdikt")
    assert said.code == ExitCode.USAGE
    assert "verdikt" in said.err
