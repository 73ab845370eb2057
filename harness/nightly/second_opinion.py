"""Asks Spark, in one job, about every run of a night that has kept its tables; the reference engine judged it first.

The engines must agree in everything that ``verdict.json`` says. Where they do not, one of them is wrong, and the cell
is a disagreement whatever its outcome was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from harness.checker import RunVerdict, differing_parts, from_json, to_json
from harness.errors import EnvironmentFault, ExitCode, SeawallError
from harness.history.run_directory import RunDirectory
from harness.history.schema import TABLES
from harness.nightly.conclusion import FAILURES, VERDICTS
from harness.nightly.keeping import ALWAYS, Keep, prune
from harness.nightly.result import CellOutcome, CellResult

_MOST_NAMED = 5
"""How many cells a sentence names."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """A cell whose run can be judged again.

    Attributes:
        here: its run directory.
        place: what Spark reads, a path of this machine or a URI.
        run: the identifier of the run.
        first: the reference engine's verdict.
    """

    result: CellResult
    here: Path
    place: Path | str
    run: str
    first: RunVerdict


def compared(
    results: Sequence[CellResult],
    directory: Path,
    master: str | None,
    tell: Callable[[str], None],
    *,
    copies: Mapping[str, str] = MappingProxyType({}),
    keep: Keep = Keep.ALL,
) -> tuple[list[CellResult], list[str]]:
    """The results, of which those about which Spark differs are disagreements; and sentences about the whole.

    Where Spark cannot be started the results are as before, and a sentence says so.

    Args:
        results: the cells of a night.
        directory: that of the night, to which the paths of runs are relative.
        master: the URL of the Spark master; None: this machine.
        tell: is called with a sentence before Spark is asked.
        copies: by cell, the URI of a copy of its run that Spark reads instead.
        keep: of which runs the tables stay after the engines have agreed.

    Raises:
        EnvironmentFault: Spark cannot be started on the given ``master``.
    """
    judged = [one for result in results if (one := _judged(result, directory, copies.get(result.cell))) is not None]
    if not judged:
        return list(results), ["No run has kept its tables, so that Spark was not asked."]
    tell(f"asking Spark about {len(judged)} of {len(results)} cells, which must agree with the reference engine")
    try:
        verdicts = [verdict for batch in _batches(judged) for verdict in _verdicts(batch, master)]
    except EnvironmentFault as fault:
        if master is not None:
            raise
        return list(results), [f"{fault.sentence} The verdicts are those of the reference engine alone."]
    differing = {one.result.cell: parts for one, verdict in verdicts if (parts := _differing(one, verdict))}
    _rewrite_reports([one for one, _ in verdicts if one.result.cell in differing or one.result.outcome in FAILURES])
    for one, _ in verdicts:
        if one.result.cell not in differing:
            prune(one.here, one.result.outcome, keep, ALWAYS)
    agreed = [_disagreement(one, differing[one.cell]) if one.cell in differing else one for one in results]
    notes = [f"Spark agrees about {len(verdicts) - len(differing)} of {len(verdicts)} runs."] if differing else []
    if unasked := _unasked(results, judged):
        notes.append(f"Spark was not asked about {unasked}, whose tables or verdicts are not there.")
    return agreed, notes


def _unasked(results: Sequence[CellResult], judged: Sequence[_Judged]) -> str:
    """The cells with a verdict that Spark could not be asked about, in words; empty: none."""
    asked = {one.result.cell for one in judged}
    lacking = [one.cell for one in results if one.run is not None and one.outcome in VERDICTS and one.cell not in asked]
    more = f" and {len(lacking) - _MOST_NAMED} more" if len(lacking) > _MOST_NAMED else ""
    return ", ".join(lacking[:_MOST_NAMED]) + more


def _judged(result: CellResult, directory: Path, copy: str | None) -> _Judged | None:
    if result.run is None or result.outcome not in VERDICTS:
        return None
    # The directory of the night may not be there yet, so that the system could not follow its `..`.
    found = RunDirectory(Path(os.path.normpath(directory / result.run)))
    try:
        if (document := found.read_verdict()) is None or not (copy or all(map(found.has_table, TABLES))):
            return None
        return _Judged(result, found.path, copy or found.path, found.manifest().run, from_json(document))
    except SeawallError:
        return None


def _batches(judged: Sequence[_Judged]) -> list[list[_Judged]]:
    """One batch, a job each, unless runs have the same identifier."""
    batches: list[dict[str, _Judged]] = []
    for one in judged:
        free = next((batch for batch in batches if one.run not in batch), None)
        if free is None:
            batches.append(free := {})
        free[one.run] = one
    return [list(batch.values()) for batch in batches]


def _verdicts(batch: Sequence[_Judged], master: str | None) -> list[tuple[_Judged, RunVerdict]]:
    from checkers import check  # noqa: PLC0415 - a second

    return list(zip(batch, check([one.place for one in batch], "spark", master), strict=True))


def _differing(one: _Judged, verdict: RunVerdict) -> str:
    """What Spark says otherwise, in words; empty: nothing."""
    as_written = from_json(json.loads(json.dumps(to_json(verdict))))
    return ", ".join(differing_parts(one.first, as_written))


def _disagreement(result: CellResult, parts: str) -> CellResult:
    told = f"Spark and the reference engine disagree about {parts}: one of them is wrong."
    changes = {"outcome": CellOutcome.DISAGREEMENT, "exit_code": int(ExitCode.INTERNAL), "signature": None}
    return result.model_copy(update={**changes, "reason": f"{told} It was {result.outcome} before."})


def _rewrite_reports(judged: Sequence[_Judged]) -> None:
    from reports import write  # noqa: PLC0415 - reads Parquet files

    for one in judged:
        if all(map(RunDirectory(one.here).has_table, TABLES)):
            write(one.here)
