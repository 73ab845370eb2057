"""Rows that break the schema are found, and said to; those that keep to it are not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from harness.errors import InvalidRun
from harness.history.arrow import arrow_schema
from harness.history.forms import breach
from harness.history.run_directory import manifest_of
from harness.history.run_json import VERDICTS
from harness.history.schema import FORMAT_VERSION, TABLES
from tests.checkers.sharing import A, accept, acquire, drain
from tests.checkers.story import Story

Row = dict[str, Any]


def told() -> Mapping[str, list[Row]]:
    """The rows of a run in which enough happens."""
    story = Story("r")
    story.send()
    story.send(result="info")
    story.poll(5, [0])
    story.elect(1)
    story.delete(1)
    story.fault()
    story.finish()
    return {
        "history": story.history, "timeline": story.timeline, "replica_logs": story.logs, "faults": story.faults
    }  # fmt: skip


def said(name: str, rows: list[Row]) -> str | None:
    """What is said of rows of a table, and of which."""
    schema = arrow_schema(TABLES[name])
    loose = pa.schema([field.with_nullable(True) for field in schema])
    found = breach(TABLES[name], pa.RecordBatch.from_pylist(rows, schema=loose))
    return None if found is None else f"{found.row} {found.says}"


@pytest.mark.parametrize("name", sorted(TABLES))
def test_rows_that_keep_to_the_schema_are_sound_and_so_is_an_empty_table(name: str) -> None:
    assert said(name, told()[name]) is None
    assert said(name, []) is None


def test_a_delivered_record_that_does_not_say_whether_it_is_intact_is_a_breach() -> None:
    rows = told()["history"]
    at = next(row for row, values in enumerate(rows) if values["f"] == "poll" and values["topic"] is not None)
    rows[at]["intact"] = None
    assert said("history", rows) == f"{at} has no intact, and is about a record that a poll delivered"


@pytest.mark.parametrize(
    ("f", "lacking", "sentence"),
    [
        ("send", ("topic",), "names half of a partition: a topic or a number, and not both"),
        ("send", ("partition",), "names half of a partition: a topic or a number, and not both"),
        ("send", ("topic", "partition"), "is about a partition and names none"),
        ("send", ("value",), "has no value, and is about a record that was sent"),
        ("poll", ("offset",), "has no offset, and is about a record that a poll delivered"),
    ],
)
def test_a_record_of_the_history_is_named_by_its_place_and_value(
    f: str, lacking: tuple[str, ...], sentence: str
) -> None:
    rows = told()["history"]
    at = next(row for row, values in enumerate(rows) if values["f"] == f and values["topic"] is not None)
    rows[at] |= dict.fromkeys(lacking)
    assert said("history", rows) == f"{at} {sentence}"


@pytest.mark.parametrize(
    ("f", "lacking", "sentence"),
    [
        ("acquire", "offset", "has no offset, and is about a record that a poll delivered"),
        ("acquire", "intact", "has no intact, and is about a record that a poll delivered"),
        ("acknowledge", "offset", "has no offset, and acknowledges a record"),
        ("acknowledge", "acknowledgement", "has no acknowledgement, and acknowledges a record"),
        ("acknowledge", "group", "has no group, and acknowledges a record"),
        ("acknowledge", ("topic", "partition"), "is about a partition and names none"),
        ("drain", ("topic", "partition"), "is about a partition and names none"),
    ],
)
def test_a_record_of_a_share_group_is_named_by_its_place_and_group(
    f: str, lacking: str | tuple[str, ...], sentence: str
) -> None:
    story = Story()
    story.send()
    acquire(story, A, [(0, 0)])
    accept(story, A, 0, 0)
    drain(story)
    rows = story.history
    at = max(row for row, values in enumerate(rows) if values["f"] == f and values["topic"] is not None)
    assert said("history", rows) is None
    rows[at] |= dict.fromkeys((lacking,) if isinstance(lacking, str) else lacking)
    assert said("history", rows) == f"{at} {sentence}"


@pytest.mark.parametrize(("name", "column"), [(t.name, c.name) for t in TABLES.values() for c in t.columns])
def test_a_null_is_a_breach_exactly_where_the_schema_permits_none(name: str, column: str) -> None:
    rows = told()[name]
    about_nothing = {"timeline": ("kind", "started"), "history": ("f", "close")}
    key, word = about_nothing.get(name, ("run", rows[0]["run"]))
    at = next(row for row, values in enumerate(rows) if values[key] == word)
    rows[at][column] = None
    declared = next(one for one in TABLES[name].columns if one.name == column)
    assert said(name, rows) == (None if declared.nullable else f"{at} has no {column}")


CHANGES = (
    ("history", "type", "OK", "has the type 'OK', which is none of invoke, ok, fail, info"),
    ("history", "f", "sned", "has the f 'sned', which is none of send, poll"),
    ("history", "offset", -1, "has the offset -1, and below 0 there is none"),
    ("history", "offset", 2**63 - 1, "has the offset 9223372036854775807, and above 9223372036854775806 there is none"),
    ("history", "acks", 2, "has the acks 2, and above 1 there is none"),
    ("history", "isolation", "snapshot", "has the isolation 'snapshot'"),
    ("timeline", "kind", "Final", "has the kind 'Final', which is none of started, state"),
    ("timeline", "role", "boss", "has the role 'boss', which is none of leader, follower, offline"),
    ("timeline", "isr", [0, None], "has a null among its isr"),
    ("timeline", "detail", "{clean: tru", "has a detail that is no JSON: '{clean: tru'"),
    ("timeline", "detail", "[1, 2]", "has a detail that is no JSON object: '[1, 2]'"),
    ("timeline", "detail", '{"epochs": [[0]]}', "has a detail whose epochs is no list<pair>"),
    ("timeline", "detail", '{"from_offset": null}', "has a detail whose from_offset is no int"),
    ("timeline", "detail", '{"elr": [true]}', "has a detail whose elr is no list<int>"),
    ("replica_logs", "control", "Commit", "has the control 'Commit', which is none of commit, abort"),
    ("replica_logs", "offset", -3, "has the offset -3"),
    ("faults", "parameters", "nope", "has a parameters that is no JSON: 'nope'"),
    ("faults", "parameters", "[1]", "has a parameters that is no JSON object: '[1]'"),
    ("faults", "parameters", '{"offset_ms": "x"}', "has a parameters whose offset_ms is no int"),
    ("faults", "parameters", '{"replaced": 1}', "has a parameters whose replaced is no bool"),
    ("faults", "parameters", '{"topic": [1]}', "has a parameters whose topic is no string"),
    ("faults", "nodes", [None], "has a null among its nodes"),
)


@pytest.mark.parametrize(("name", "column", "value", "sentence"), CHANGES)
def test_a_value_that_the_schema_does_not_know_is_named_with_its_row(
    name: str, column: str, value: object, sentence: str
) -> None:
    rows = told()[name]
    rows[-1][column] = value
    assert (said(name, rows) or "").startswith(f"{len(rows) - 1} {sentence}")


@pytest.mark.parametrize(
    ("kind", "lacking", "sentence"),
    [
        ("state", ("leader_epoch",), "has no leader_epoch, and is about a leader"),
        ("state", ("high_watermark",), "has no high_watermark, and is about a leader"),
        ("state", ("log_end_offset",), "has no log_end_offset, and is about a leader"),
        ("final", ("leader_epoch",), "has no leader_epoch, and is about a leader"),
        ("election", ("leader_epoch",), "has no leader_epoch, and is about a leader"),
        ("state", ("partition",), "names half of a partition"),
        ("election", ("topic", "partition"), "is about a partition and names none"),
    ],
)
def test_who_leads_says_which_partition_in_which_epoch_and_how_far(
    kind: str, lacking: tuple[str, ...], sentence: str
) -> None:
    rows = told()["timeline"]
    at = next(i for i, row in enumerate(rows) if row["kind"] == kind and row["role"] in (None, "leader"))
    rows[at] |= dict.fromkeys(lacking)
    assert (said("timeline", rows) or "").startswith(f"{at} {sentence}")


# -------------------------------------------------------------------------------------------------------- run.json

DOCUMENT: Row = {
    "format": FORMAT_VERSION,
    "run": "r",
    "scenario": "s",
    "seed": 1,
    "started_wall": "",
    "state": "complete",
}

WRONG: tuple[tuple[Row, str], ...] = (
    ({"guarantees": "x"}, "guarantees: 'x' is refused: input should be an object"),
    (
        {"guarantees": {"min_insync_replicas": "2"}},
        "guarantees.min_insync_replicas: '2' is refused: input should be a valid integer",
    ),
    (
        {"guarantees": {"unclean_election": 1}},
        "guarantees.unclean_election: 1 is refused: input should be a valid boolean",
    ),
    ({"seed": True}, "seed: True is refused: input should be a valid integer"),
    ({"run": 7}, "run: 7 is refused: input should be a valid string"),
    ({"configuration": []}, "configuration: [] is refused: input should be an object"),
    ({"predictions": ["lost-write"]}, "predictions[0]: 'lost-write' is refused: input should be an object"),
    ({"predictions": [{"kindd": "lost-write"}]}, "predictions[0]: unknown key 'kindd'; did you mean 'kind'?"),
    ({"predictions": [{"topic": "t"}]}, "predictions[0]: 'kind' is missing."),
    ({"predictions": [{"kind": "x", "offset": "7"}]}, "predictions[0].offset: '7' is refused: "),
    ({"predictions": [{"kind": "x", "verdict": "BAD"}]}, "predictions[0].verdict: 'BAD' is refused: input should be"),
    ({"tables": {"history": 3}}, "tables.history: 3 is refused: input should be an object"),
    ({"tables": {"history": {"rows": "3"}}}, "tables.history.rows: '3' is refused: input should be a valid integer"),
    ({"state": ["complete"]}, "state: ['complete'] is refused: input should be"),
)


@pytest.mark.parametrize(("changed", "sentence"), WRONG)
def test_a_value_in_run_json_that_is_none_is_refused_with_its_key(changed: Row, sentence: str) -> None:
    with pytest.raises(InvalidRun) as refused:
        manifest_of(json.loads(json.dumps(DOCUMENT | changed)), "run.json")
    assert refused.value.sentence.startswith(f"run.json: {sentence}")


def test_a_run_json_that_says_everything_is_read() -> None:
    guarantees = {"min_insync_replicas": 2, "settles": True, "timeline": "sampled", "somebody_s_own": "7"}
    predictions = [{"kind": "lost-write", "topic": None, "partition": 0, "offset": 3, "verdict": v} for v in VERDICTS]
    said = {
        "guarantees": guarantees,
        "predictions": predictions,
        "duration_s": None,
        "tables": {"history": {"rows": 1}},
    }
    assert manifest_of({**DOCUMENT, **said}, Path("run.json")).predictions == predictions
