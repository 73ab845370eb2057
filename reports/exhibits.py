"""Finds when the rows that show an anomaly were recorded, so that the page can point at them in a time strip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.checker import Anomaly, Evidence
from reports.run import Run

Times = Mapping[tuple[str, Any], int]
"""By table and key of a row: when it was recorded."""

_KEYS = {"history": ("index",), "timeline": ("node", "incarnation", "sequence")}


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A row that shows an anomaly. ``time_ns`` is None where the row has no time, or was not read."""

    id: str
    words: str
    source: str
    time_ns: int | None


def times_of(run: Run, shown: Sequence[Evidence]) -> Times:
    """When the rows of the evidence were recorded."""
    times: dict[tuple[str, Any], int] = {("faults", f.name): f.injected_ns or f.aimed_ns for f in run.faults}
    for table, keys in _KEYS.items():
        wanted = {key for one in shown if one.table == table and (key := _key(one)) is not None}
        if wanted:
            found = run.times(table, keys, wanted)
            times |= {(table, key): found[key] for key in wanted & found.keys()}
    times |= {(one.table, _key(one)): int(one.row["request_ns"]) for one in shown if "request_ns" in one.row}
    return times


def exhibits(anomaly: Anomaly, times: Times, name: str) -> Sequence[Exhibit]:
    """The evidence of an anomaly; their ids begin with ``name``."""
    return [
        Exhibit(f"{name}-{number}", one.says, _source(one), times.get((one.table, _key(one))))
        for number, one in enumerate(evidence(anomaly), 1)
    ]


def evidence(anomaly: Anomaly) -> Sequence[Evidence]:
    """The rows that show an anomaly, and the frames that show whose it is."""
    return anomaly.evidence if anomaly.attribution is None else (*anomaly.evidence, *anomaly.attribution.frames)


def _key(one: Evidence) -> Any:
    if one.table == "faults":
        return one.row.get("fault")
    if "request_ns" in one.row:  # a frame says when itself
        return tuple(one.row.values())
    if one.table not in _KEYS:
        return None
    values = {"incarnation": 0, **one.row}
    key = tuple(values.get(name) for name in _KEYS[one.table])
    return key if all(isinstance(value, int) for value in key) else None


def _source(one: Evidence) -> str:
    return f"{one.table}: " + ", ".join(f"{key} {value}" for key, value in one.row.items() if key != "request_ns")
