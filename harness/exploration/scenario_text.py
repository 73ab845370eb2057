"""Writes a schedule as a scenario file: its sends and faults, with the time in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import yaml

from harness.exploration.loads import drawn
from harness.exploration.shrink import Shrunk
from harness.exploration.spelled_setup import settings_of, turned
from harness.simulation.core.configuration import MS, PARTITION, Configuration
from harness.simulation.core.drawn_kinds import DELETIONS, ELECT, SLOW_LINKS
from harness.simulation.core.drawn_loads import PLAIN
from harness.simulation.core.planned import Planned

PRECISION_MS = 1
"""Waits are written in whole milliseconds."""

INEXPRESSIBLE = frozenset({SLOW_LINKS, *DELETIONS})
"""Disturbances that a scenario has no word for: it deletes up to an offset, and not a share."""


class Moment(NamedTuple):
    """Something that a schedule does at a time."""

    time_ns: int
    order: int
    step: Mapping[str, Any]


def steps_of(moments: Iterable[Moment], scale: int) -> list[dict[str, Any]]:
    """The steps of a schedule, with waits in between that are ``scale`` times as long."""
    steps: list[dict[str, Any]] = []
    now_ms = 0
    for moment in sorted(moments, key=lambda one: one[:2]):
        at_ms = moment.time_ns * scale // MS // PRECISION_MS
        if at_ms > now_ms:
            steps.append({"wait_s": (at_ms - now_ms) / 1_000})
            now_ms = at_ms
        steps.append(dict(moment.step))
    return steps


def shrunk_document(shrunk: Shrunk, scale: int) -> dict[str, Any]:
    """The scenario of a shrunk seed, every time ``scale`` times as long."""
    configuration, setup = shrunk.configuration, shrunk.setup
    changed = turned(setup)
    own = _of_the_plain_load(shrunk, scale) if configuration.load == PLAIN else _of_a_load(shrunk, scale)
    return {
        "id": f"seed-{shrunk.seed}-{setup.generation.replace('.', '-')}",
        "title": f"What seed {shrunk.seed} shows on generation {setup.generation}",
        "source": "seawall shrink",
        "description": str(shrunk.violation),
        "generation": setup.generation,
        **({"replication": changed} if changed else {}),
        "cluster": {"brokers": configuration.nodes, "settings": {**settings_of(configuration, scale), **own.settings}},
        "topics": [own.topic],
        "workload": own.workload,
        "schedule": own.schedule,
    }


class _Own(NamedTuple):
    """What a scenario has of the load of a seed."""

    settings: Mapping[str, Any]
    topic: Mapping[str, Any]
    workload: Mapping[str, Any]
    schedule: list[dict[str, Any]]


def _of_the_plain_load(shrunk: Shrunk, scale: int) -> _Own:
    """Its sends are steps of the schedule."""
    nodes = shrunk.configuration.nodes
    topic = {
        "name": PARTITION.topic,
        "partitions": 1,
        "replication_factor": nodes,
        "replicas": list(range(nodes)),
    }
    steps = steps_of([*_sends(shrunk), *_faults(shrunk)], scale)
    return _Own({}, topic, {"name": "unique_sends", "consumers": 1}, steps)


def _of_a_load(shrunk: Shrunk, scale: int) -> _Own:
    """It runs in the background, at its own pace, until the faults are over."""
    configuration = shrunk.configuration
    load = drawn(shrunk.seed, configuration.load, configuration.nodes, shrunk.setup.knobs)
    steps, lasts_s = steps_of(_faults(shrunk), scale), configuration.horizon_ms * scale / 1000
    left_s = lasts_s - sum(step.get("wait_s", 0.0) for step in steps)
    return _Own(load.settings, load.topic, load.workload, [*steps, {"wait_s": round(max(left_s, 0.001), 3)}])


def _sends(shrunk: Shrunk) -> list[Moment]:
    """What the clients sent before the faults were over."""
    horizon_ns = shrunk.configuration.horizon_ms * MS
    recording = shrunk.world.recording
    assert recording is not None
    sent = [row for row in recording.history if row["f"] == "send" and row["type"] == "invoke"]
    return [
        Moment(time_ns, number, {"send": _send(len(list(rows)), acks, f"s{number}")})
        for number, ((time_ns, _, acks), rows) in enumerate(
            groupby(sent, key=lambda row: (row["time_ns"], row["process"], row["acks"])), 1
        )
        if time_ns < horizon_ns
    ]


def _faults(shrunk: Shrunk) -> list[Moment]:
    """What was done to the cluster."""
    horizon_ns = shrunk.configuration.horizon_ms * MS
    moments: list[Moment] = []
    for number, planned in enumerate(shrunk.faults, 1):
        moments += _planned_moments(planned, f"f{number}", shrunk.configuration, horizon_ns)
    return moments


def _send(records: int, acks: int, name: str) -> dict[str, Any]:
    return {"per_partition": records, "acks": "all" if acks == -1 else acks, "expect": "any", "as": name}


def _planned_moments(planned: Planned, name: str, configuration: Configuration, horizon_ns: int) -> list[Moment]:
    late = 1 << 40
    if planned.kind in INEXPRESSIBLE:
        return []
    if planned.kind == ELECT:
        return [Moment(planned.at_ns, late, {"elect": {"leader": planned.aim, "expect": "any"}})]
    fault = {"fault": planned.kind, **planned.parameters(configuration.nodes)}
    over_ns = min(planned.at_ns + planned.for_ns, horizon_ns)
    return [
        Moment(planned.at_ns, late, {"inject": {**fault, "as": name}}),
        Moment(over_ns, 2 * late, {"heal": name}),
    ]


def to_yaml(document: Mapping[str, Any], remarks: Sequence[str]) -> str:
    """A scenario file that opens with ``remarks``."""
    text = yaml.safe_dump(dict(document), sort_keys=False, default_flow_style=None, width=118, allow_unicode=True)
    return "".join(f"# {remark}\n" for remark in remarks) + text
