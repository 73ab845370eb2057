"""Withholds evidence of a run, so that it is judged as a run of a lower evidence tier would be.

* *Samples*: of each replica the last state in the time between two looks of the sampler of real Kafka, without its ISR
  and partition epoch, much as that records it, which also repeats a state that lasts; and every decision of the
  controller. No truncation, and no beginning of a log that moved.
* *Logs*: the replica logs, and of each replica the bounds of its log in the end; and as in the next tier.
* *Disks*: the replica logs and those bounds; no broker answers a client's questions about leaders and watermarks.
* *Metadata*: no replica logs; four times a second the leader's epoch and high watermark, and who leads, as a client is
  told by a broker that is never cut off. So this is the best that a client can be told.
* *Clients*: the history and the faults alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.checker import EvidenceTier
from harness.history.run_directory import Manifest
from harness.model import CONTROLLER_ID, NO_NODE
from harness.runner.archive import Rows
from harness.targets.kafka.timeline_sampler import LOOK_INTERVAL_S

Row = Mapping[str, Any]
Tables = tuple[Rows, Rows, Rows]
"""The history, the timeline and the replica logs."""

_LOOK_INTERVAL_NS = round(LOOK_INTERVAL_S * 1e9)
_ASK_INTERVAL_NS = 250_000_000


def withheld(tier: EvidenceTier, manifest: Manifest, tables: Tables) -> tuple[Manifest, Tables]:
    """What is left in ``tier`` of a run whose brokers recorded every change."""
    history, timeline, replica_logs = tables
    match tier:
        case EvidenceTier.BROKERS:
            return manifest, tables
        case EvidenceTier.SAMPLES:
            seen = [_as_looked_at(row) for row in samples(timeline, _looked_at(timeline))]
            return _with("sampled", manifest), (history, seen, replica_logs)
        case EvidenceTier.LOGS:
            told = [*_told(timeline), *ends(timeline)]
            return _with("logs", manifest), (history, told, replica_logs)
        case EvidenceTier.DISKS:
            return _with("logs", manifest), (history, list(ends(timeline)), replica_logs)
        case EvidenceTier.METADATA:
            return _with("metadata", manifest), (history, list(_told(timeline)), ())
        case EvidenceTier.CLIENTS:
            return _with("none", manifest), (history, (), ())


def samples(timeline: Iterable[Row], is_seen: Callable[[Row], bool]) -> list[dict[str, Any]]:
    """Of what brokers say of their replicas only what ``is_seen``, and never that they cut a log.

    What the controller decided, and the ``final`` rows, are all there. Every life's rows are numbered anew.
    """
    kept = [row for row in timeline if _is_complete(row) or (row["kind"] == "state" and is_seen(row))]
    numbers: Counter[tuple[int, int]] = Counter()
    found = []
    for row in kept:
        life = row["node"], row["incarnation"]
        found.append({**row, "sequence": numbers[life]})
        numbers[life] += row["kind"] != "final"
    return found


def ends(timeline: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """How each replica ended, as the checkpoints of its disk have it: not who led, nor who was in sync."""
    for row in timeline:
        if row["kind"] == "final" and row["topic"] is not None and row["node"] != CONTROLLER_ID:
            known = json.loads(row["detail"] or "{}")
            detail = json.dumps({"source": "disk"} | {name: what for name, what in known.items() if name == "epochs"})
            yield {**row, "role": "offline", "leader": None, "partition_epoch": None, "isr": None, "detail": detail}


def _is_complete(row: Row) -> bool:
    return bool(row["kind"] == "final" or row["node"] == CONTROLLER_ID)


def _with(timeline: str, manifest: Manifest) -> Manifest:
    """As of a target that knows less; none has such a timeline in virtual time, so none is named."""
    configuration = {name: value for name, value in manifest.configuration.items() if name != "target"}
    return replace(manifest, configuration=configuration, guarantees={**manifest.guarantees, "timeline": timeline})


def _looked_at(timeline: Sequence[Row]) -> Callable[[Row], bool]:
    """Whether a row is the last of its replica in an interval."""
    last: dict[tuple[Any, ...], int] = {}
    for row in timeline:
        if row["kind"] == "state" and row["node"] != CONTROLLER_ID:
            last[*_replica(row), row["incarnation"], row["time_ns"] // _LOOK_INTERVAL_NS] = id(row)
    looked_at = set(last.values())
    return lambda row: id(row) in looked_at


def _replica(row: Row) -> tuple[Any, ...]:
    return row["node"], row["topic"], row["partition"]


def _as_looked_at(row: dict[str, Any]) -> dict[str, Any]:
    """A state of a broker as a client reads it: it does not say in which ISR the broker believes."""
    if row["kind"] != "state" or row["node"] == CONTROLLER_ID:
        return row
    return row | {"isr": None, "partition_epoch": None}


def _told(timeline: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Answers of leaders, one in an interval for each partition, in the order of their times."""
    last: dict[tuple[Any, ...], Row] = {}
    for row in timeline:
        if row["kind"] == "state" and row["role"] == "leader":
            last[row["topic"], row["partition"], row["time_ns"] // _ASK_INTERVAL_NS] = row
    told = sorted(last.values(), key=lambda row: row["time_ns"])
    for sequence, row in enumerate(told):
        yield {
            **row,
            **dict.fromkeys(("role", "partition_epoch", "log_end_offset")),
            "node": NO_NODE, "incarnation": 0, "sequence": sequence, "kind": "metadata",
            "detail": json.dumps({"asked_ns": row["time_ns"]}),
        }  # fmt: skip
