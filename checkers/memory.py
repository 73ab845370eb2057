"""Checks a run that is in memory with the reference engine."""

from __future__ import annotations

from collections.abc import Sequence

from checkers import reference
from checkers.conclusion import is_sampled, isr_wanted, lag_allowed_ns
from checkers.expected import expected
from checkers.frames import Frames, not_understood
from checkers.judge import judge
from checkers.proofs_match import filed
from checkers.recovery import comes_to_rest, healed_ns
from checkers.rotten_logs import rotten, swapped
from checkers.row import Row
from checkers.rows import RunRows
from checkers.severity import Evidence
from checkers.witnesses import Witnesses
from harness.checker import RunVerdict
from harness.history.run_directory import Manifest

Tables = tuple[Sequence[Row], Sequence[Row], Sequence[Row]]
"""The history, the timeline and the replica logs."""


def rows_in_memory(manifest: Manifest, tables: Tables, faults: Sequence[Row]) -> RunRows:
    """``tables``, and how to read them by the run's guarantees and its faults."""
    trusted = filed(faults, expected(manifest))
    return RunRows(
        manifest.run,
        *tables,
        healed_ns(faults),
        sampled=is_sampled(manifest.guarantees),
        settled=comes_to_rest(manifest.guarantees, faults, manifest.unrest),
        lag_ns=lag_allowed_ns(manifest.guarantees),
        min_isr=isr_wanted(manifest.guarantees),
        rotten=rotten(trusted),
        swapped=swapped(trusted),
    )


def decided(manifest: Manifest, tables: Tables, faults: Sequence[Row], wire: Sequence[Row] | None = None) -> RunVerdict:
    """The verdict on a run; ``wire``: the rows of its wire tap, None: it had none."""
    answers = reference.answer([rows_in_memory(manifest, tables, faults)])
    history, _, replica_logs = tables
    frames = None if wire is None else Frames(wire, not_understood(wire), history, replica_logs)
    return judge(Evidence(manifest, faults), answers, Witnesses(*tables, faults, frames), "reference")
