"""Checks a run that is in memory with the reference engine."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.reference import engine
from checkers.verdicts.evidence_tiers import reads_logs
from checkers.verdicts.judge import judge
from checkers.verdicts.severity import Evidence
from checkers.views.compacted_logs import CompactedLogs
from checkers.views.configured import is_sampled, is_virtual, isr_wanted, lag_allowed_ns, members_kept_ns
from checkers.views.expected import expected
from checkers.views.frames import Frames, not_understood
from checkers.views.history import History
from checkers.views.metadata import Metadata, parted
from checkers.views.partition_ends import PartitionEnds
from checkers.views.proofs_match import filed
from checkers.views.recovery import comes_to_rest, healed_ns
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.rotten_logs import rotten, swapped
from checkers.views.row import Row
from checkers.views.run_demands import RunDamage, RunDemands
from checkers.views.timeline import Timeline
from checkers.views.tombstones import tombstones_stay_ns
from checkers.views.witnesses import Witnesses
from harness import compacted
from harness.checker import RunVerdict
from harness.history.run_directory import Manifest
from harness.parts import Parts

Tables = tuple[Sequence[Row], Sequence[Row], Sequence[Row]]
"""The history, the timeline and the replica logs."""


def views_in_memory(manifest: Manifest, tables: Tables, faults: Sequence[Row], *, faults_known: bool = True) -> Parts:
    """What a rule of the reference engine may name: the views of ``tables``, and of the run's guarantees and faults.

    ``faults_known``: whether the table of faults could be read, so that a run is known to have had them healed.
    """
    run, guarantees, trusted = manifest.run, manifest.guarantees, filed(faults, expected(manifest))
    of_nodes, told = parted(tables[1])
    timeline, logs = Timeline(run, of_nodes, is_sampled(guarantees)), ReplicaLogs(run, _but_compacted(tables[2]))
    marks = {place: leader["high_watermark"] for place, leader in timeline.final_leaders.items()}
    history = History(run, tables[0], marks)
    settled = faults_known and comes_to_rest(guarantees, faults, manifest.unrest)
    return Parts(
        history,
        timeline,
        Metadata(run, told),
        logs,
        CompactedLogs(run, [row for row in tables[2] if row["topic"] == compacted.TOPIC]),
        PartitionEnds(history, timeline, logs),
        RunDemands(
            settled,
            lag_allowed_ns(guarantees),
            isr_wanted(guarantees),
            members_kept_ns(guarantees),
            is_virtual(guarantees),
            tombstones_stay_ns(guarantees, faults),
        ),
        RunDamage(healed_ns(faults), rotten(trusted), swapped(trusted)),
    )


def _but_compacted(replica_logs: Sequence[Row]) -> Sequence[Row]:
    """What rules judge that take each record for one that must be there."""
    return [row for row in replica_logs if row["topic"] != compacted.TOPIC]


def decided(manifest: Manifest, tables: Tables, faults: Sequence[Row], wire: Sequence[Row] | None = None) -> RunVerdict:
    """The verdict on a run; ``wire``: the rows of its wire tap, None: it had none."""
    answers = engine.answer([views_in_memory(manifest, tables, faults)])
    history, timeline, replica_logs = tables
    frames = None if wire is None else Frames(wire, not_understood(wire), history, replica_logs)
    logs = replica_logs if reads_logs(manifest) else None
    return judge(Evidence(manifest, faults), answers, Witnesses(history, timeline, logs, faults, frames), "reference")
