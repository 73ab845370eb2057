"""Follows findings across nights: which are new tonight, still failing, flaky, fixed, or not run.

A finding is what fails in a series in one way: the same target, generation, scenario and settings, with the same kinds
and places of anomalies. Seeds differ every night, and so do values and offsets; neither is part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from harness.nightly.conclusion import FAILURES, PASSES, gravity
from harness.nightly.result import CellResult

FIXED_AFTER = 3
"""How many cells of a series must have passed since a finding was seen last before it counts as fixed."""

RECENT = 5
"""A finding that did not show in one of so many nights before, in which its series passed, is flaky."""

Key = tuple[str, str]
"""A series, and the signature of its incidents, or else the outcome."""


class Standing(StrEnum):
    """What a finding is on one night."""

    NEW = "new"
    """Seen for the first time, or again after it was fixed."""
    STILL_FAILING = "still failing"
    FLAKY = "flaky"
    """Seen in some of the latest nights, while the series passed in others."""
    FIXED = "fixed"
    """Cells of the series passed, at least :data:`FIXED_AFTER` of them, and every seed of the bank is among them."""
    NOT_RUN = "not run"
    """No cell of the series decided anything."""


@dataclass
class Finding:
    """One way in which a series failed.

    Attributes:
        standings: by night, from the first on which it was seen.
        latest: the cell that showed it last.
        seeds: those that have shown it.
        passes: cells of the series that have passed since.
        fixed: the night on which it became fixed; None: it is not.
    """

    key: Key
    first_seen: str
    last_seen: str
    latest: CellResult
    standings: dict[str, Standing] = field(default_factory=dict)
    seeds: set[int] = field(default_factory=set)
    passes: int = 0
    fixed: str | None = None
    _passed_seeds: set[int] = field(default_factory=set)
    _recent: list[bool] = field(default_factory=list)

    @property
    def standing(self) -> Standing:
        """On the last night; a fixed finding stays fixed while its series does not run."""
        last = self.standings[next(reversed(self.standings))]
        return Standing.FIXED if self.fixed and last is Standing.NOT_RUN else last

    def seen(self, night: str, cells: Sequence[CellResult]) -> None:
        """Note that ``cells`` showed it on ``night``."""
        if not self.standings or self.fixed:
            standing, self._recent = Standing.NEW, []
        else:
            is_flaky = not all(self._recent[-RECENT:])
            standing = Standing.FLAKY if is_flaky else Standing.STILL_FAILING
        self.standings[night] = standing
        self.last_seen, self.latest = night, min(cells, key=gravity)
        self.seeds |= {one.seed for one in cells if one.seed is not None}
        self._recent.append(True)
        self.passes, self.fixed, self._passed_seeds = 0, None, set()

    def not_seen(self, night: str, cells: Sequence[CellResult], banked: frozenset[int]) -> None:
        """Note that ``cells``, all that the series had on ``night``, did not show it."""
        passed = [one for one in cells if one.outcome in PASSES]
        if not passed:
            self.standings[night] = Standing.NOT_RUN
            return
        self.passes += len(passed)
        self._passed_seeds |= {one.seed for one in passed if one.seed is not None}
        self._recent.append(False)
        if self.fixed is None and self.passes >= FIXED_AFTER and banked <= self._passed_seeds:
            self.fixed = night
        self.standings[night] = Standing.FIXED if self.fixed else Standing.FLAKY


def key_of(result: CellResult) -> Key | None:
    """The finding that a cell shows; None: it shows none."""
    if result.outcome not in FAILURES:
        return None
    return result.series, result.signature or result.outcome.value


def nights_of(results: Iterable[CellResult]) -> list[str]:
    """The nights, in the order in which they started, or else of their names."""
    started: dict[str, str] = {}
    for one in results:
        at = one.started or one.night
        started[one.night] = min(at, started.get(one.night, at))
    return sorted(started, key=lambda night: (started[night], night))


def findings(results: Sequence[CellResult], bank: Mapping[Key, frozenset[int]] | None = None) -> list[Finding]:
    """Every finding of the nights of ``results``, as of the last one.

    Args:
        results: the cells of all nights that are known.
        bank: the seeds of the bank by the finding that they showed.
    """
    banked = bank or {}
    found: dict[Key, Finding] = {}
    by_night: dict[str, dict[str, list[CellResult]]] = {night: {} for night in nights_of(results)}
    for one in results:
        by_night[one.night].setdefault(one.series, []).append(one)
    for night, by_series in by_night.items():
        shown: dict[Key, list[CellResult]] = {}
        for one in (one for cells in by_series.values() for one in cells):
            if (key := key_of(one)) is not None:
                shown.setdefault(key, []).append(one)
        for key, cells in shown.items():
            if key not in found:
                found[key] = Finding(key, night, night, cells[0])
            found[key].seen(night, cells)
        for key in found.keys() - shown.keys():
            found[key].not_seen(night, by_series.get(key[0], ()), banked.get(key, frozenset()))
    return sorted(found.values(), key=_urgency)


def _urgency(finding: Finding) -> tuple[int, str, Key]:
    return list(Standing).index(finding.standing), finding.first_seen, finding.key
