"""Checks a run that is in memory with the reference engine."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.reference import engine
from checkers.verdicts.judge import judge
from checkers.verdicts.severity import Evidence
from checkers.views.conclusion import is_sampled, isr_wanted, lag_allowed_ns
from checkers.views.expected import expected
from checkers.views.frames import Frames, not_understood
from checkers.views.proofs_match import filed
from checkers.views.recovery import comes_to_rest, healed_ns
from checkers.views.rotten_logs import rotten, swapped
from checkers.views.row import Row
from checkers.views.rows import RunRows
from checkers.views.witnesses import Witnesses
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
    answers = engine.answer([rows_in_memory(manifest, tables, faults)])
    history, _, replica_logs = tables
    frames = None if wire is None else Frames(wire, not_understood(wire), history, replica_logs)
    return judge(Evidence(manifest, faults), answers, Witnesses(*tables, faults, frames), "reference")
