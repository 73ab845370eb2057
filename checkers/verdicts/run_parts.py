"""What is known about one run, in the parts that rules on facts, and what judges findings, may name."""

from __future__ import annotations

from checkers.verdicts.severity import Evidence
from checkers.views.configured import Configured, is_sampled
from checkers.views.delete_records_orders import orders
from checkers.views.expected import expected
from checkers.views.fault_journal import FaultJournal
from checkers.views.log_epochs import LogEpochs
from checkers.views.proofs_match import filed
from checkers.views.runner_report import RunnerReport
from checkers.views.states import States
from harness.facts import Facts
from harness.parts import Parts


def parts_of(evidence: Evidence, facts: Facts) -> Parts:
    """The parts of a run, of which ``facts`` are; the manifest is among them."""
    manifest = evidence.manifest
    run, guarantees, wanted = manifest.run, manifest.guarantees, expected(manifest)
    return Parts(
        manifest,
        States(run, facts.nodes.intervals, is_sampled(guarantees)),
        LogEpochs(run, facts.logs.log_epochs),
        Configured(run, guarantees, wanted, manifest.generation),
        FaultJournal(run, evidence.faults, filed(evidence.faults, wanted), orders(manifest)),
        RunnerReport(manifest.unrest, manifest.endings, manifest.unknown_topics),
        facts.nodes,
        facts.logs,
        facts.clients,
        facts.acks,
    )
