"""Writes the outputs of a night into its directory: ``results.jsonl``, ``junit.xml`` and ``summary.md``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.nightly import junit, results_file, summary
from harness.nightly.bank import Bank, seeds
from harness.nightly.conclusion import gravity
from harness.nightly.result import CellResult
from harness.nightly.standing import Finding, findings


def write(
    directory: Path,
    results: Sequence[CellResult],
    history: Sequence[CellResult] = (),
    bank: Bank = (),
    *,
    notes: Sequence[str] = (),
    missing: Sequence[str] = (),
) -> list[Finding]:
    """Replace each output at once, so that those of a cancelled job are true; return the findings.

    Args:
        directory: that of the night; it is made if it is not there.
        results: the cells that have ended, or are known not to run.
        history: the results of past nights, to tell what is new; what it has of this night is ignored.
        bank: the seeds that must pass before a finding counts as fixed.
        notes: sentences about the night as a whole.
        missing: those of them that are about a missing shard.

    Raises:
        EnvironmentFault: an output cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    ordered = sorted(results, key=gravity)
    nights = {one.night for one in ordered}
    found = findings([*(one for one in history if one.night not in nights), *ordered], seeds(bank))
    tonight = {one.key: one.standings[night] for one in found for night in nights if night in one.standings}
    results_file.write(directory / results_file.NAME, ordered)
    junit.write(directory / junit.NAME, ordered, tonight, missing)
    text = summary.markdown(ordered, found, notes, is_partial=bool(missing))
    summary.write(directory / summary.NAME, text)
    return found
