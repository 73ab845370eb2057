"""What a run that passed would have noticed: the detection matrix, applied to the run's load and faults.

``power.json`` holds what ``seawall detection --json`` has measured: for each bug, load and kind of fault, in how many
runs the checkers find the bug. A run is credited with one such run, or with a part of one, however long it is: what one
configuration does not bring to light, more records often do not either. A run that differs from what the matrix was
measured on is credited with nothing.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow.compute as pc

from checkers.registry import KINDS
from faults import traits_of
from harness.anomaly import Found
from harness.checker import Outcome
from harness.errors import InvalidRun
from harness.history.run_directory import Manifest, RunDirectory
from harness.history.schema import TABLES
from harness.history.table_file import require_readable
from harness.model import is_broker
from harness.replication.knobs import GENERATIONS, REMEDIES
from reports.rows import Fault
from reports.run import Run
from reports.sentences import count

POWER_FILE: Final = Path(__file__).parent / "power.json"

_Z: Final = 1.959964
"""The normal quantile of a 95 % interval."""

_GENERATION: Final = "4.1"
_REPLICAS: Final = 3
_MIN_INSYNC: Final = 2
"""The min.insync.replicas of the matrix."""

_QUIET: Final = "none"
_SCHEDULE: Final = "scenario"
_GROUPS: Final = "groups"
_MADE_UP: Final = "synthetic"

_COLUMN_OF_DISTURBANCE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "slow_links": "partition", "elect": "control", "retention": "deletion", "delete_records": "deletion",
    }
)  # fmt: skip
"""The column of the matrix for the disturbances of the simulator, which are no faults."""

_WORTH_A_LINE: Final = 0.05


class Interval(NamedTuple):
    """A share, and the ends of its 95 % confidence interval."""

    share: float
    low: float
    high: float


def wilson(found: int, tried: int) -> Interval:
    """Wilson's score interval for ``found`` out of ``tried``; everything is possible when nothing was tried."""
    if not tried:
        return Interval(0.0, 0.0, 1.0)
    share, spread = found / tried, _Z * _Z / tried
    middle = (share + spread / 2) / (1 + spread)
    reach = _Z / (1 + spread) * math.sqrt(share * (1 - share) / tried + spread / (4 * tried))
    return Interval(share, max(0.0, middle - reach), min(1.0, middle + reach))


@dataclass(frozen=True, slots=True)
class Chance:
    """How often the checkers find a bug in the cell of the matrix that is most like a run.

    Attributes:
        place: the load and the faults there.
        share: of the runs there; ``low``: the lower end of its 95 % interval. Both in proportion for a run that is
            less than one of those.
    """

    bug: str
    does: str
    place: str
    share: float
    low: float


@dataclass(frozen=True, slots=True)
class Power:
    """What a run would have noticed.

    Attributes:
        lacking: what the run lacks and the matrix had, each the rest of a sentence that begins with "it"; when there is
            any, nothing is claimed, and all else is empty.
        likely: the bugs that it would have found, the surest first.
        unnoticed: the names of those that it may have missed.
        scheduled: the names of those that only schedules made for them have shown, with which no run is credited.
        uncounted: kinds of anomaly that this run could not have shown as a violation, or not for sure, and why not.
        exposure: what it was exposed to, in words.
        untried: what its load left out, each the rest of a sentence that begins with "it had no".
    """

    lacking: Sequence[str] = ()
    likely: Sequence[Chance] = ()
    unnoticed: Sequence[str] = ()
    scheduled: Sequence[str] = ()
    uncounted: Mapping[str, str] = field(default_factory=dict)
    exposure: str = ""
    untried: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Exposure:
    """What a run was exposed to: its row of the matrix, records acknowledged with acks=all, proven faults by column.

    ``own``: the rows for some bugs alone that it is like, too, by its workloads.
    """

    workload: str
    own: Collection[str]
    records: int
    faults: Mapping[str, int]
    uncounted: Collection[str]


def power(run: Run) -> Power | None:
    """The detection power of a run that passed; None of one that did not."""
    if run.verdict.outcome is not Outcome.PASS:
        return None
    if lacking := tuple(_lacking(run)):
        return Power(lacking)
    measured, uncounted = _measured(), dict(_uncounted(run.manifest))
    exposure = _exposure(run, uncounted)
    random, scheduled = _bugs(measured)
    best = [_best(measured, bug, exposure) for bug in random]
    return Power(
        likely=sorted((one for one in best if one.low >= _WORTH_A_LINE), key=lambda one: (-one.low, one.bug)),
        unnoticed=sorted(one.bug for one in best if one.low < _WORTH_A_LINE),
        scheduled=scheduled,
        uncounted=uncounted,
        exposure=_words(exposure),
        untried=tuple(_untried(run)),
    )


# -------------------------------------------------------------------------------------------------------- the premises


def _lacking(run: Run) -> Iterator[str]:
    """What the run lacks and the matrix had."""
    promised = run.manifest.guarantees
    if not _has_the_rules(run.manifest):
        yield f"was not on the rules of {_GENERATION}"
    if _replicas(run.manifest) < _REPLICAS:
        yield f"did not have {_REPLICAS} replicas of every partition"
    if promised.get("min_insync_replicas") != _MIN_INSYNC:
        yield f"did not have min.insync.replicas={_MIN_INSYNC}"
    if promised.get("unclean_election") is not False:
        yield "did not rule out unclean elections"
    if not run.verdict.counts.get("acked_all"):
        yield "had no record acknowledged with acks=all"
    for name, words in (("timeline", "timeline of its brokers"), ("replica_logs", "replica logs")):
        if not _number_of_rows(run, name):
            yield f"has no {words}"


def _has_the_rules(manifest: Manifest) -> bool:
    """Whether it is of the matrix's generation, with no knob changed except for remedies."""
    rules = json.loads(json.dumps(asdict(GENERATIONS[_GENERATION])))
    knobs: Mapping[str, Any] = manifest.configuration.get("knobs") or {}
    turned = {name for name, value in knobs.items() if name not in REMEDIES and rules.get(name) != value}
    return manifest.generation == _GENERATION and not turned


def _replicas(manifest: Manifest) -> int:
    """How many replicas the partitions have at the least; 0: unknown."""
    factor = manifest.guarantees.get("replication_factor")
    if isinstance(factor, int):
        return factor
    topics = manifest.configuration.get("scenario", {}).get("topics", ())
    return min((int(topic.get("replication_factor", 0)) for topic in topics), default=0)


def _number_of_rows(run: Run, table: str) -> int:
    """By the footers: a report does not read a table that is too large."""
    try:
        files = RunDirectory(run.directory).table_files(table)
        return sum(require_readable(TABLES[table], file) for file in files)
    except InvalidRun:
        return 0


def _uncounted(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """The kinds of anomaly that need not be a violation in such a run, although they are in the matrix."""
    if manifest.guarantees.get("settles") is not True:
        yield "stuck", "it does not promise to come to rest"
    if manifest.guarantees.get("idempotent_producers") is False:
        yield "duplicate", "its producers are not idempotent"
    if manifest.guarantees.get("timeline") == "sampled":
        for kind in sorted(name for name, one in KINDS.items() if one.sampled.found is not Found.ALL):
            yield kind, "its brokers were only looked at now and then"


# -------------------------------------------------------------------------------------------------------- the chances


def _exposure(run: Run, uncounted: Collection[str]) -> _Exposure:
    counts = run.verdict.counts
    records = counts["acked_all"]
    workload = "single" if counts.get("sends_ok", records) <= records else "mixed"
    faults = Counter(kind for fault in run.faults if fault.proven and (kind := _class_of(fault)))
    return _Exposure(workload, set(_own(run)), records, faults, uncounted)


def _own(run: Run) -> Iterator[str]:
    """The loads under which some bugs alone are looked for, as far as one of the run's workloads is like it."""
    if run.verdict.counts.get("partitions_given"):
        yield _GROUPS
    written = run.manifest.configuration.get("workload", {})
    for name, load in _measured()["loads"].items():
        if any(_is_like(load, one) for one in (written, *written.get("parts", ()))):
            yield name


def _is_like(load: Mapping[str, Any], workload: Mapping[str, Any]) -> bool:
    """Whether a workload has the name of a load, and its other marks; of a list that it is dealt out, among others."""
    return all(
        set(mark) <= set(workload.get(name) or ()) if isinstance(mark, list) else workload.get(name) == mark
        for name, mark in load.items()
    )


def _untried(run: Run) -> Iterator[str]:
    """What the load left out, by the tables that were read."""
    logs, starts = run.replica_logs, run.timeline["log_start_offset"]
    if len(logs) and pc.all(pc.equal(logs["offset"], logs["batch_base_offset"])).as_py():
        yield "batch of several records"
    if len(starts) and pc.max(starts).as_py() == 0:
        yield "deletion of old records"


def _words(exposure: _Exposure) -> str:
    faults = (f"{number} of {kind}" for kind, number in sorted(exposure.faults.items()))
    return ", ".join([f"{count(exposure.records, 'record')} acknowledged with acks=all", *faults])


def _bugs(measured: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[str]]:
    """The bugs of brokers: those with which a run may be credited, and those that only schedules have shown."""
    random: list[str] = []
    scheduled: list[str] = []
    for bug, cells in sorted(measured["bugs"].items()):
        found = {_is_random(name) for name, score in cells.items() if score.get("found")}
        if not all(name.startswith(f"{_MADE_UP}/") for name in cells):
            (scheduled if found == {False} else random).append(bug)
    return random, scheduled


def _is_random(cell: str) -> bool:
    depth, workload, _ = cell.split("/")
    return depth != _MADE_UP and workload != _SCHEDULE


def _best(measured: Mapping[str, Any], bug: str, exposure: _Exposure) -> Chance:
    """The best chance; none where no cell is like the run."""
    none = Chance(bug, measured["does"][bug], "", 0.0, 0.0)
    return max(_chances(measured, bug, exposure), key=lambda one: (one.low, one.share), default=none)


def _chances(measured: Mapping[str, Any], bug: str, exposure: _Exposure) -> Iterator[Chance]:
    """One for each cell of the matrix that is like the run; the one without faults is like every run.

    What was measured under a load of its own alone counts for runs with that load.
    """
    cells: Mapping[str, Any] = {name: score for name, score in measured["bugs"][bug].items() if _is_random(name)}
    rows = {name.split("/")[1] for name in cells}
    chosen = exposure.workload if exposure.workload in rows else "single"
    if len(rows) == 1 and rows <= set(exposure.own):
        (chosen,) = rows
    for name, score in cells.items():
        _, row, column = name.split("/")
        if row == chosen and (column == _QUIET or column in exposure.faults):
            part = _part(measured["controls"][name], exposure, column)
            share = wilson(_detected(score, exposure.uncounted), score.get("tried", 0))
            yield Chance(bug, measured["does"][bug], f"{row}, {column}", part * share.share, part * share.low)


def _part(control: Mapping[str, Any], exposure: _Exposure, column: str) -> float:
    """How much of an average run of a cell a run comes to; never more than one."""
    runs: int = control["tried"]
    records: float = exposure.records * runs / max(1, control.get("sends", 0))
    faults: float = exposure.faults.get(column, 0) * runs / max(1, control.get("faults", 0))
    return min(1.0, records, 1.0 if column == _QUIET else faults)


def _detected(score: Mapping[str, Any], uncounted: Collection[str]) -> int:
    """In how many trials, at the least, another kind came up than ``uncounted``: one trial may show several."""
    kinds: Mapping[str, int] = score.get("kinds", {})
    others: int = score.get("found", 0) - sum(kinds.get(kind, 0) for kind in uncounted)
    return max(0, others, *(number for kind, number in kinds.items() if kind not in uncounted))


def _class_of(fault: Fault) -> str | None:
    """The column of a fault; a controller that is killed or stands still is another matter than a broker."""
    if fault.kind in _COLUMN_OF_DISTURBANCE:
        return _COLUMN_OF_DISTURBANCE[fault.kind]
    traits = traits_of(fault.kind)
    return traits.column if all(map(is_broker, fault.nodes)) else traits.column_on_controller


@cache
def _measured() -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(POWER_FILE.read_text())
    return document
