"""Which tier of evidence a run has, and which kinds of anomaly that evidence cannot show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from checkers.views.configured import Configured, is_watched
from checkers.views.expected import expected, knows_states, reads_disks
from checkers.views.fault_journal import FaultJournal, deletes
from harness.anomaly import AnomalyKind, Found
from harness.checker import EvidenceTier
from harness.facts import NodeFacts
from harness.history.run_directory import Manifest


def tier_of(configured: Configured, node_facts: NodeFacts) -> EvidenceTier:
    """What was observed of a run; of an imported history, and of a cluster that only its clients saw, the least."""
    if not _sees_brokers(configured):
        if reads_disks(configured.guarantees):
            return EvidenceTier.LOGS if node_facts.metadata else EvidenceTier.DISKS
        return EvidenceTier.METADATA if node_facts.metadata else EvidenceTier.CLIENTS
    return EvidenceTier.SAMPLES if configured.sampled else EvidenceTier.BROKERS


def reads_logs(manifest: Manifest) -> bool:
    """Whether replica logs are part of the evidence of a run."""
    configured = Configured(manifest.run, manifest.guarantees, expected(manifest), manifest.generation)
    return _sees_brokers(configured) or reads_disks(manifest.guarantees)


def _sees_brokers(configured: Configured) -> bool:
    return knows_states(configured.guarantees) and is_watched(configured)


def not_asked(
    tier: EvidenceTier, kinds: Mapping[str, AnomalyKind], configured: Configured, journal: FaultJournal
) -> Sequence[str]:
    """The names of those of ``kinds`` that the evidence of ``tier`` cannot show in a run, sorted."""
    is_deleting = deletes(configured, journal)
    return sorted(name for name, kind in kinds.items() if not _can_show(tier, kind, is_deleting=is_deleting))


def unasked_sentence(tier: EvidenceTier, unasked: Sequence[str], of: int) -> str:
    """What ``tier`` leaves out, in a sentence; ``of``: how many kinds there are."""
    return f"Evidence: {tier}. {len(unasked)} of {of} kinds of anomaly were not asked for: {', '.join(unasked)}."


def _can_show(tier: EvidenceTier, kind: AnomalyKind, *, is_deleting: bool) -> bool:
    by_metadata = kind.shown_by_metadata and not (is_deleting and kind.unless_deleting)
    match tier:
        case EvidenceTier.CLIENTS:
            return kind.shown_by_clients
        case EvidenceTier.METADATA:
            return kind.shown_by_clients or by_metadata
        case EvidenceTier.DISKS:
            return kind.shown_by_clients or kind.shown_by_logs
        case EvidenceTier.LOGS:
            return kind.shown_by_clients or by_metadata or kind.shown_by_logs
        case EvidenceTier.SAMPLES:
            return kind.sampled.found is not Found.NONE
        case EvidenceTier.BROKERS:
            return True
