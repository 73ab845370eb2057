"""Compares two checked runs: verdicts, anomalies by kind and place, outages, recovery, latency, and settings.

Offsets and values differ with every seed, so that they are not compared. B is worse when its outcome is graver, when
it has a violation of a kind in a place where A has none, or when a measure is worse beyond tolerance: by more than a
share of A's, and by more than what two runs of the same kind differ in anyway.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from harness.checker import EXCUSED, Outcome, RunVerdict, Verdict
from harness.history.run_directory import Manifest
from reports import static_page
from reports.run import Run, read

TOLERANCE: Final = 0.5
"""The share by which a measure may be worse."""

MOST_SETTINGS: Final = 200

_LEAST: Final = {"s": 1.0, "ms": 50.0, "per s": 10.0}
"""By unit, the differences that mean nothing."""

_GRAVITY: Final = (
    (Outcome.PASS, Outcome.AS_PREDICTED),
    (Outcome.INCONCLUSIVE,),
    (Outcome.INVALID,),
    (Outcome.NOT_REPRODUCED,),
    (Outcome.VIOLATION,),
)


class Change(StrEnum):
    """What B is, beside A."""

    SAME = "same"
    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"
    """Neither better nor worse."""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that is compared, in words."""

    what: str
    a: str
    b: str
    change: Change


@dataclass(frozen=True, slots=True)
class Side:
    """A run."""

    path: str
    manifest: Manifest
    verdict: RunVerdict


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, and what differs.

    Attributes:
        anomalies: a line for each kind and place of either run.
        settings: those that differ; ``settings_hidden`` more are left out.
    """

    a: Side
    b: Side
    outcome: Line
    anomalies: tuple[Line, ...]
    measures: tuple[Line, ...]
    settings: tuple[Line, ...]
    settings_hidden: int

    @property
    def worse(self) -> tuple[str, ...]:
        """What is worse in B."""
        lines = (self.outcome, *self.anomalies, *self.measures)
        return tuple(line.what for line in lines if line.change is Change.WORSE)


def compare(a: Path, b: Path, tolerance: float = TOLERANCE) -> Comparison:
    """Two checked runs.

    Raises:
        InvalidRun: one of them is no run directory, or has not been checked.
    """
    one, other = read(a), read(b)
    settings = tuple(_settings(one.manifest, other.manifest))
    return Comparison(
        a=Side(str(a), one.manifest, one.verdict),
        b=Side(str(b), other.manifest, other.verdict),
        outcome=_outcome(one.verdict, other.verdict),
        anomalies=tuple(_anomalies(one.verdict, other.verdict)),
        measures=tuple(_measures(one, other, tolerance)),
        settings=settings[:MOST_SETTINGS],
        settings_hidden=max(0, len(settings) - MOST_SETTINGS),
    )


def write(path: Path, comparison: Comparison) -> None:
    """Replace an HTML page with the comparison.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    static_page.write(path, "comparison.html.j2", comparison=comparison)


# ------------------------------------------------------------------------------------------- verdicts and anomalies


def _outcome(a: RunVerdict, b: RunVerdict) -> Line:
    before, after = (next(i for i, some in enumerate(_GRAVITY) if v.outcome in some) for v in (a, b))
    change = Change.WORSE if after > before else Change.BETTER if after < before else Change.SAME
    if change is Change.SAME and a.outcome is not b.outcome:
        change = Change.DIFFERENT
    return Line("outcome", a.outcome.value, b.outcome.value, change)


Place = tuple[str, str]
"""The kind of an anomaly, and where: ``topic/partition``, or empty."""


def _anomalies(a: RunVerdict, b: RunVerdict) -> Iterator[Line]:
    before, after = _found(a), _found(b)
    for place in sorted(before.keys() | after.keys()):
        one, other = before.get(place), after.get(place)
        what = " in ".join(filter(None, place))
        yield Line(what, _told(one), _told(other), _change(one, other))


def _found(verdict: RunVerdict) -> Mapping[Place, tuple[int, Verdict]]:
    """By kind and place the number of anomalies and the gravest verdict on them."""
    found: dict[Place, tuple[int, Verdict]] = {}

    def add(kind: str, topic: str | None, partition: int | None, count: int, worst: Verdict) -> None:
        place = (kind, "" if topic is None else f"{topic}/{partition}")
        known, gravest = found.get(place, (0, worst))
        found[place] = known + count, min(worst, gravest, key=list(Verdict).index)

    for extent in verdict.extents:
        add(extent.kind, extent.topic, extent.partition, extent.count, extent.verdicts[0])
    counted = {(extent.kind, extent.topic, extent.partition) for extent in verdict.extents}
    for one in verdict.anomalies:
        if (one.kind, one.topic, one.partition) not in counted:
            add(one.kind, one.topic, one.partition, 1, one.verdict)
    return found


def _told(found: tuple[int, Verdict] | None) -> str:
    return "none" if found is None else f"{found[0]:,} {found[1].value}"


def _change(a: tuple[int, Verdict] | None, b: tuple[int, Verdict] | None) -> Change:
    before, after = (found is not None and found[1] is Verdict.VIOLATION for found in (a, b))
    if before is not after:
        return Change.WORSE if after else Change.BETTER
    excused = (found is None or found[1] in EXCUSED for found in (a, b))
    return Change.SAME if a == b or (before and after) or all(excused) else Change.DIFFERENT


# --------------------------------------------------------------------------------------------------------- measures


@dataclass(frozen=True, slots=True)
class _Measure:
    name: str
    unit: str
    is_better_high: bool = False
    is_judged: bool = True


_MEASURES: Final = (
    _Measure("longest outage", "s"),
    _Measure("outages", "", is_judged=False),
    _Measure("first acknowledgement after healing", "s"),
    _Measure("ISR full after healing", "s"),
    _Measure("latency p50", "ms"),
    _Measure("latency p99", "ms"),
    _Measure("latency max", "ms", is_judged=False),
    _Measure("acknowledgements", "per s", is_better_high=True),
)


def measured(run: Run) -> Mapping[str, float | None]:
    """What a run measured, by name; None: it does not say."""
    recovery = run.verdict.recovery
    first = [max(0, r.first_ack_ns - r.healed_ns) / 1e9 for r in recovery if r.first_ack_ns and r.healed_ns]
    full = [after for r in recovery if (after := r.isr_full_after_s) is not None]
    latencies = _latencies_ms(run.history)
    quantiles = pc.quantile(latencies, q=[0.5, 0.99, 1.0]).to_pylist() if len(latencies) else [None] * 3
    return {
        "longest outage": max((one.longest_outage_s for one in recovery), default=None),
        "outages": float(sum(len(one.outages) for one in recovery)) if recovery else None,
        "first acknowledgement after healing": max(first, default=None),
        "ISR full after healing": max(full, default=None),
        **dict(zip(("latency p50", "latency p99", "latency max"), quantiles, strict=True)),
        "acknowledgements": _acknowledged_per_s(run.history),
    }


def _measures(a: Run, b: Run, tolerance: float) -> Iterator[Line]:
    before, after = measured(a), measured(b)
    for one in _MEASURES:
        old, new = before[one.name], after[one.name]
        if old is not None or new is not None:
            words = _value(old, one.unit), _value(new, one.unit)
            yield Line(one.name, *words, _judged(one, old, new, tolerance))


def _value(value: float | None, unit: str) -> str:
    return "unknown" if value is None else f"{value:,.4g} {unit}".rstrip()


def _judged(measure: _Measure, a: float | None, b: float | None, tolerance: float) -> Change:
    if a == b:
        return Change.SAME
    if a is None or b is None or not measure.is_judged:
        return Change.DIFFERENT
    low, high = sorted((a, b))
    if high - low < _LEAST[measure.unit] or high <= low * (1 + tolerance):
        return Change.SAME
    return Change.WORSE if (b > a) is not measure.is_better_high else Change.BETTER


def _sends(history: pa.Table, type_: str) -> pa.Table:
    matches = pc.and_(pc.equal(history["f"], "send"), pc.equal(history["type"], type_))
    return history.filter(matches).select(["process", "op", "mop", "time_ns"])


def _latencies_ms(history: pa.Table) -> pa.ChunkedArray:
    """How long acknowledged sends took."""
    invoked = _sends(history, "invoke").rename_columns(["process", "op", "mop", "invoked_ns"])
    both = _sends(history, "ok").join(invoked, keys=["process", "op", "mop"], join_type="inner")
    return pc.divide(pc.cast(pc.subtract(both["time_ns"], both["invoked_ns"]), pa.float64()), 1e6)


def _acknowledged_per_s(history: pa.Table) -> float | None:
    times = _sends(history, "ok")["time_ns"]
    if len(times) < 2 or (lasted := pc.max(times).as_py() - pc.min(times).as_py()) <= 0:
        return None
    return float((len(times) - 1) / (lasted / 1e9))


# --------------------------------------------------------------------------------------------------------- settings


def _settings(a: Manifest, b: Manifest) -> Iterator[Line]:
    before, after = (dict(_flat(_configured(manifest), "")) for manifest in (a, b))
    for key in sorted(before.keys() | after.keys()):
        one, other = before.get(key, "none"), after.get(key, "none")
        if one != other:
            yield Line(key, one, other, Change.DIFFERENT)


def _configured(manifest: Manifest) -> Mapping[str, Any]:
    own = {"scenario": manifest.scenario, "generation": manifest.generation, "seed": manifest.seed}
    configuration = {key: value for key, value in manifest.configuration.items() if key != "reproduce"}
    return {"run": own, "version": manifest.versions, **configuration}


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, one in value.items():
            yield from _flat(one, f"{path}.{key}".lstrip("."))
    else:
        text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
        yield path, text if len(text) <= 200 else f"{text[:199]}…"
