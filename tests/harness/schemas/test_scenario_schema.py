"""The scenario schema accepts what the reader accepts, and refuses what a schema can of what the reader refuses."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

import faults
import workloads
from harness.broker.settings import Settings
from harness.cli.schema import Document
from harness.errors import UsageError
from harness.replication.knobs import generation
from harness.runner.planned_chaos import chaos_faults
from harness.runner.planned_schedule import steps_faults
from harness.scenario import Scenario, parse
from harness.validation import validated
from tests.harness.schemas.published import complaints, from_yaml, validator

ROOT = Path(__file__).parents[3]
SCENARIOS = sorted([
    *ROOT.glob("harness/scenarios/*.yaml"),
    *ROOT.glob("harness/detection/scenarios/*.yaml"),
    *ROOT.glob("docs/**/scenarios/*.yaml"),
])  # fmt: skip


def refused_by_schema(document: object) -> list[str]:
    return complaints(validator(Document.SCENARIO), document)


def refused_by_reader(document: Any) -> str | None:
    """Why; everything that a scenario says is read, though not what no cluster can do."""
    try:
        read = validated(Scenario, document, "")
        Settings.parse(dict(read.cluster.settings))
        workloads.parse(read.workload.name, read.workload.parameters())
        generation(read.generation or "4.1", {k: str(v).lower() for k, v in read.replication.items()})
        list(steps_faults(dict(enumerate(read.schedule or ()))))
        list(chaos_faults(read.chaos) if read.chaos is not None else ())
        for name in read.predictions:
            generation(name)
    except UsageError as error:
        return error.sentence
    return None


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_shipped_scenario_has_the_schema(path: Path) -> None:
    assert refused_by_schema(from_yaml(path.read_text())) == []


BASE = from_yaml("""
id: whole
title: t
source: s
generation: "4.1"
replication: {broker_epoch_check: true, truncation: hw}
cluster: {brokers: 3, settings: {min.insync.replicas: 2, unclean.leader.election.enable: "true"}}
topics: [{name: ledger, partitions: 2, replication_factor: 3, replicas: [0, 1, 2]}]
workload: {name: unique_sends, producers: 2, rate: 10.0, acks: [all, 1]}
settle_s: 10
outcomes:
  "0.10, 2.0.0-2.1": {outcome: [lost, diverged], final_logs: {ledger-0: {"0,2": ["m1..m4@2"]}}, note: n}
  "4.1": {outcome: [safe], anomalies: [{kind: duplicate, offset: 3}]}
schedule:
  - send: {per_partition: 4, acks: all, as: first}
  - send: {records: [a, b], producer: p, idempotent: true, age_s: -3.5}
  - until: {sent: first, topic: ledger, isr: [0, 1, 2], replicas: [{node: 0, role: leader}]}
  - inject: {fault: kill, node: leader, as: dead}
  - heal: dead
  - hold: {links: [[2, controller-1], [clients, 0]], as: held}
  - release: held
  - inject: {fault: partition, isolate: 1, direction: out, as: cut}
  - inject: {fault: corrupt_log, node: 1, topic: ledger, offset: 1, clean: true, interrupted: true, as: rot}
  - elect: {partition: 0, leader: 2, unclean: true, expect: any}
  - commit: {group: g, offsets: {ledger-0: 2}}
  - consume: {group: g, start: beginning, delivers: {ledger-0: [m1]}}
  - delete_records: {before: high_watermark}
  - spoof_fetch: {to: 0, replica: 1, offset: 3}
  - sync: [0, 1]
  - unavailable: {for_s: 0}
  - {wait_s: 0.5, generations: ["0.11-2.0.1"]}
""")
CHAOS = {key: value for key, value in BASE.items() if key not in ("schedule", "outcomes")} | from_yaml("""
chaos:
  faults:
    - {fault: pause, node: any, weight: 3, for_s: [0.5, 1]}
    - {fault: clock, node: follower, offset_ms: -2000}
    - {fault: stall, links: [[0, any]]}
  interval_s: [0, 1]
  at_once: 2
  budget: any
duration_s: 3
predictions: {"0.10": [{kind: lost-write, topic: ledger, partition: 0, verdict: WEAK}]}
""")


def test_what_the_mutations_begin_with_is_accepted_by_both() -> None:
    for document in (BASE, CHAOS):
        assert refused_by_schema(document) == []
        assert refused_by_reader(document) is None


def _changed(path: str, value: object) -> Any:
    """``BASE`` or, for what only it has, ``CHAOS`` with the value at a path, ``topics/0/name``, replaced."""
    document = deepcopy(CHAOS if path.startswith(("chaos", "predictions", "duration_s")) else BASE)
    *parents, last = [int(part) if part.isdecimal() else part for part in path.split("/")]
    place = document
    for part in parents:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return document


REFUSED: tuple[tuple[str, object], ...] = (
    ("title", ...),
    ("idd", "x"),
    ("id", "Not An Id"),
    ("catalogue", "Z99"),
    ("version", 2),
    ("generation", "5.0"),
    ("cluster/brokers", 10),
    ("cluster/broker", 3),
    ("cluster/settings/min.insync.replicas", 0.1),
    ("cluster/settings/x", ["y"]),
    ("topics", []),
    ("topics/0/name", "__consumer_offsets"),
    ("topics/0/name", "a b"),
    ("topics/0/partitions", 0),
    ("workload/name", "other"),
    ("workload/producer", 3),
    ("workload/producers", "3"),
    ("workload/acks", [2]),
    ("replication/truncation", "never"),
    ("replication/other_knob", True),
    ("schedule", ...),
    ("schedule", []),
    ("chaos/faults", []),
    ("chaos/faults/0/weight", 0),
    ("chaos/faults/0/for_s", [1]),
    ("chaos/faults/0/fault", "pauze"),
    ("chaos/faults/0/as", "name"),
    ("chaos/faults/1/offset_ms", ...),
    ("chaos/at_once", 0),
    ("chaos/budget", "some"),
    ("chaos/interval_s", [1, 2, 3]),
    ("duration_s", 0),
    ("predictions/4.2", []),
    ("predictions/0.10/0/verdict", "EXPECTED"),
    ("predictions/0.10/0/kinds", "x"),
    ("outcomes/newest", {"outcome": ["safe"]}),
    ("outcomes/4.1/outcome", []),
    ("outcomes/4.1/outcome", ["gone"]),
    ("outcomes/4.1/outcome", ["safe", "lost"]),
    ("outcomes/4.1/final_logs", {"ledger": {}}),
    ("outcomes/4.1/final_logs", {"ledger-0": {"first": []}}),
    ("outcomes/4.1/final_logs", {"ledger-0": {"0": ["m1"]}}),
    ("predictions", {"0.10": []} | {"4.1": [{"kind": 3}]}),
    ("schedule/0", {}),
    ("schedule/0/heal", "x"),
    ("schedule/0/send/records", ["a"]),
    ("schedule/0/send/per_partition", 0),
    ("schedule/0/send/per_partition", ...),
    ("schedule/0/send/acks", 2),
    ("schedule/1/send/records", []),
    ("schedule/1/send/records", ["1a"]),
    ("schedule/1/send/producer", ...),
    ("schedule/1/send/age_s", 1e10),
    ("schedule/0/send/transaction", "commit"),
    ("schedule/2/until", {"topic": "ledger"}),
    ("schedule/2/until", {"exited": []}),
    ("schedule/2/until/replicas/0/role", "boss"),
    ("schedule/2/until/within_s", 0),
    ("schedule/3/inject/node", "boss"),
    ("schedule/3/inject/node", -1),
    ("schedule/3/inject/node", "controller-0"),
    ("schedule/3/inject/as", ...),
    ("schedule/3/inject/fault", ...),
    ("schedule/3/inject/free_bytes", 3),
    ("schedule/3/inject/weight", 3),
    ("schedule/5/hold/links", []),
    ("schedule/5/hold/links", [[1]]),
    ("schedule/5/hold/links", [[1, "any-1"]]),
    ("schedule/5/hold/as", ...),
    ("schedule/7/inject/between", [0, 1]),
    ("schedule/7/inject/isolate", ...),
    ("schedule/7/inject", {"fault": "partition", "links": [], "as": "cut"}),
    ("schedule/8/inject/clean", False),
    ("schedule/8/inject/how", "burn"),
    ("schedule/9/elect/expect", "maybe"),
    ("schedule/10/commit/offsets", {}),
    ("schedule/10/commit/offsets", {"ledger": 1}),
    ("schedule/10/commit/group", ...),
    ("schedule/11/consume/reset", "newest"),
    ("schedule/12/delete_records/before", -1),
    ("schedule/13/spoof_fetch/to", ...),
    ("schedule/14/sync", []),
    ("schedule/16/wait_s", 0),
    ("schedule/16/generations", []),
    ("schedule/16/generations", ["new"]),
)


@pytest.mark.parametrize(("path", "value"), REFUSED, ids=[f"{path}={value}" for path, value in REFUSED])
def test_what_the_reader_refuses_the_schema_refuses(path: str, value: object) -> None:
    document = _changed(path, value)
    assert refused_by_reader(document) is not None
    assert refused_by_schema(document) != []


def test_a_schedule_and_chaos_exclude_each_other_and_so_do_predictions_and_outcomes() -> None:
    for document in (BASE | {"chaos": CHAOS["chaos"]}, BASE | {"predictions": CHAOS["predictions"]}):
        assert refused_by_reader(document) is not None
        assert refused_by_schema(document) != []


def test_null_stands_for_a_key_that_is_left_out() -> None:
    document = _changed("schedule/3", {"heal": None, "wait_s": 1, "send": None})
    del document["schedule"][4]
    assert refused_by_schema(document) == []
    parse(yaml.safe_dump(document))


def _places(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield f"{path}{key}", inner
        yield from _places(inner, f"{path}{key}/")


MUTATIONS: tuple[Callable[[Any], object], ...] = (
    lambda value: {**value, "unknown": 1} if isinstance(value, dict) else [value],
    lambda value: 7 if isinstance(value, str) else "text",
    lambda _: True,
    lambda _: None,
    lambda _: ...,
)


TAKEN_FOR_1 = re.compile(r".*/acks(/[0-9])?")
"""Where the reader takes ``true`` for 1, as Python does."""


@pytest.mark.parametrize("base", [BASE, CHAOS], ids=["schedule", "chaos"])
def test_the_schema_refuses_nothing_that_the_reader_accepts(base: Any) -> None:
    """Values of a file are replaced in several ways, and left out: 200 of some 800 ways, the same ones each time."""
    schema, wrong = validator(Document.SCENARIO), []
    ways = [(path, mutation(value)) for path, value in _places(base) for mutation in MUTATIONS]
    for path, value in random.Random(7).sample(ways, 200):
        document = _mutated(base, path, value)
        if not schema.is_valid(document) and refused_by_reader(document) is None:
            wrong.append((path, value, refused_by_schema(document)))
    assert [one for one in wrong if one[1] is not True or not TAKEN_FOR_1.fullmatch(one[0])] == []


def _mutated(base: Any, path: str, value: object) -> Any:
    document = deepcopy(base)
    *parents, last = path.split("/")
    place = document
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    key = int(last) if isinstance(place, list) else last
    if value is ...:
        del place[key]
    else:
        place[key] = value
    return document


def test_a_plugin_is_in_the_printed_schema_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.runner.scenario_schema import schema

    monkeypatch.setattr(faults.KINDS, "own", {"kill": faults.KINDS["kill"]})
    assert "inject_pause" not in json.loads(schema())["$defs"]
