"""Writes a schedule as a scenario file: its sends and faults, with the time in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any, NamedTuple

import yaml

from harness.replication.knobs import GENERATIONS
from harness.simulation.core.configuration import MS, PARTITION, Configuration
from harness.simulation.core.drawn_kinds import DELETIONS, ELECT, SLOW_LINKS
from harness.simulation.core.planned import Planned
from harness.simulation.shrink import Shrunk

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
    changed = {
        f.name: getattr(setup.knobs, f.name)
        for f in fields(setup.knobs)
        if getattr(setup.knobs, f.name) != getattr(GENERATIONS[setup.generation], f.name)
    }
    return {
        "id": f"seed-{shrunk.seed}-{setup.generation.replace('.', '-')}",
        "title": f"What seed {shrunk.seed} shows on generation {setup.generation}",
        "source": "seawall shrink",
        "description": str(shrunk.violation),
        "generation": setup.generation,
        **({"replication": changed} if changed else {}),
        "cluster": {"brokers": configuration.nodes, "settings": _settings(configuration, scale)},
        "topics": [
            {
                "name": PARTITION.topic,
                "partitions": 1,
                "replication_factor": configuration.nodes,
                "replicas": list(range(configuration.nodes)),
            }
        ],
        "workload": {"name": "unique_sends", "consumers": 1},
        "schedule": steps_of(_moments(shrunk), scale),
    }


def _settings(configuration: Configuration, scale: int) -> dict[str, Any]:
    flushed = {
        "log.flush.interval.messages": configuration.flush_messages,
        "log.flush.interval.ms": configuration.flush_ms * scale,
    }
    return {
        "min.insync.replicas": configuration.min_insync_replicas,
        "unclean.leader.election.enable": configuration.unclean_leader_election_enable,
        "broker.session.timeout.ms": configuration.session_timeout_ms * scale,
        "broker.heartbeat.interval.ms": configuration.heartbeat_ms * scale,
        "replica.lag.time.max.ms": configuration.replica_lag_time_max_ms * scale,
        "replica.fetch.wait.max.ms": configuration.replica_fetch_wait_max_ms * scale,
        "replica.fetch.backoff.ms": configuration.replica_fetch_backoff_ms * scale,
        "replica.socket.timeout.ms": configuration.request_timeout_ms * scale,
        "replica.high.watermark.checkpoint.interval.ms": configuration.checkpoint_ms * scale,
        **{name: value for name, value in flushed.items() if value},
    }


def _moments(shrunk: Shrunk) -> list[Moment]:
    """What the clients sent before the faults were over, and the faults."""
    horizon_ns = shrunk.configuration.horizon_ms * MS
    recording = shrunk.world.recording
    assert recording is not None
    sent = [row for row in recording.history if row["f"] == "send" and row["type"] == "invoke"]
    moments = [
        Moment(time_ns, number, {"send": _send(len(list(rows)), acks, f"s{number}")})
        for number, ((time_ns, _, acks), rows) in enumerate(
            groupby(sent, key=lambda row: (row["time_ns"], row["process"], row["acks"])), 1
        )
        if time_ns < horizon_ns
    ]
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
