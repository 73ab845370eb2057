"""What a run that passed would have noticed: the detection matrix, read for its load and its faults.

``power.json`` is what ``seawall detection --json`` has measured: how often the checkers find each bug in a run of so
many records and faults of one kind. A run with other numbers is taken for as many such runs as it has faults of that
kind (or records, when nothing went wrong), one independent of the other: an estimate, and on purpose one from below.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow.compute as pc

from harness.checker import Outcome
from harness.model import CONTROLLER
from reports.rows import Fault
from reports.run import Run
from reports.sentences import count

POWER_FILE: Final = Path(__file__).parent / "power.json"

_Z: Final = 1.959964
"""The normal quantile of a 95 % interval."""

_QUIET: Final = "none"
_CONTROL: Final = "control"
_CLASS_OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        "kill": "kill", "stop": "kill", "power_loss": "power", "wipe_disk": "power", "pause": "pause",
        "partition": "partition", "isolate": "partition", "cut": "partition", "slow": "partition",
        "disk_full": "disk", "log_dir_failure": "disk", "corrupt_log": "rot", "clock": "clock",
        "controller_kill": _CONTROL, "controller_pause": _CONTROL, "elect": _CONTROL,
        "retention": "deletion", "delete_records": "deletion",
    }
)  # fmt: skip
"""Which column of the matrix a kind of fault belongs to."""

_ALL_ACKS: Final = -1
_CERTAIN: Final = 0.99
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
    """How likely a run would have found a bug: at least ``low``."""

    bug: str
    does: str
    low: float

    @property
    def words(self) -> str:
        """In per cent."""
        return f"over {_CERTAIN:.0%}" if self.low > _CERTAIN else f"{self.low:.0%}"


@dataclass(frozen=True, slots=True)
class Power:
    """What a run would have noticed.

    Attributes:
        likely: the bugs that it would have found, the surest first.
        unnoticed: the names of those of which there is no saying so.
        exposure: what it was exposed to, in words.
    """

    likely: Sequence[Chance]
    unnoticed: Sequence[str]
    exposure: str


def power(run: Run) -> Power | None:
    """The detection power of a run that passed; None of one that did not."""
    if run.verdict.outcome is not Outcome.PASS:
        return None
    measured = _measured()
    faults = Counter(kind for fault in run.faults if fault.proven and (kind := _class_of(fault)))
    sends, workload = run.verdict.counts.get("sends", 0), _workload(run)
    chances = [
        Chance(bug, measured["does"][bug], _chance(measured, cells, workload, sends, faults))
        for bug, cells in measured["bugs"].items()
        if not all(name.startswith("synthetic/") for name in cells)
    ]
    return Power(
        sorted((one for one in chances if one.low >= _WORTH_A_LINE), key=lambda one: (-one.low, one.bug)),
        sorted(one.bug for one in chances if one.low < _WORTH_A_LINE),
        ", ".join([count(sends, "record"), *(f"{number} of {kind}" for kind, number in sorted(faults.items()))]),
    )


def _chance(
    measured: Mapping[str, Any], cells: Mapping[str, Any], workload: str, sends: int, faults: Mapping[str, int]
) -> float:
    """That at least one of the matrix's runs of which this one consists would have found the bug."""
    quiet, missed = 0.0, 1.0
    for name, low, control in _columns(measured, cells, workload):
        if name == _QUIET:
            quiet = 1 - (1 - low) ** (sends / max(1.0, control.get("sends", 0) / control["tried"]))
        elif name in faults:
            missed *= (1 - low) ** (faults[name] / max(1.0, control.get("faults", 0) / control["tried"]))
    return max(quiet, 1 - missed)


def _columns(
    measured: Mapping[str, Any], cells: Mapping[str, Any], workload: str
) -> Iterator[tuple[str, float, Mapping[str, Any]]]:
    """Each fault mix of the matrix with the lower end of how often the bug is found there, and the control."""
    rows = {name.split("/")[1] for name in cells}
    chosen = workload if workload in rows else "single"
    for name, score in cells.items():
        _, row, column = name.split("/")
        if row == chosen:
            yield column, wilson(score.get("found", 0), score.get("tried", 0)).low, measured["controls"][name]


def _class_of(fault: Fault) -> str | None:
    return _CONTROL if CONTROLLER in fault.nodes else _CLASS_OF.get(fault.kind)


def _workload(run: Run) -> str:
    acks = set(pc.unique(run.history["acks"]).to_pylist()) - {None}
    return "single" if acks <= {_ALL_ACKS} else "mixed"


@cache
def _measured() -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(POWER_FILE.read_text())
    return document
