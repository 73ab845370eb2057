"""Which tables would hold the excuse of a finding; if one of them has a gap, the finding is ``INDETERMINATE``.

This applies where the configuration permits what would excuse a kind:

* The timeline shows what unclean elections gave up, and what was deleted.
* The faults show what a lossy failure took from a disk, what a fault damaged there, and which node was down.
* No table shows what an unclean election of the groups' own topic gave up: those elections are not recorded.
* An imported history has no brokers, so no timeline. Its faults are not required: the loss of every copy at one time
  would excuse any loss, and no option states that machines lost power.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.registry import rule_of
from checkers.views.configured import Configured, is_watched
from checkers.views.cuts import cuts_brokers_off
from checkers.views.fault_journal import FaultJournal
from checkers.views.log_epochs import LogEpochs
from checkers.views.lossy_failures import may_excuse
from checkers.views.own_judgements import AboutDamage
from checkers.views.row import Row
from checkers.views.states import States
from faults import traits_of
from harness.anomaly import AnomalyKind, LossyFailure, Retention
from harness.excuse import EXCUSES
from harness.findings import Finding
from harness.history.run_directory import Manifest
from harness.model import NO_NODE
from harness.parts import Parts


def is_unobserved(
    configured: Configured, log_epochs: LogEpochs, manifest: Manifest, finding: Finding, kind: AnomalyKind
) -> bool:
    """Whether the configuration permits what would excuse it, and no broker was there to tell of that.

    A finding about what the cluster told a client has its excuse with it: an election, where the epochs differ.
    """
    unobserved = not is_watched(configured) and finding.node != NO_NODE
    return unobserved and "timeline" in tables_of_excuses(log_epochs, manifest, finding, kind)


def tables_of_excuses(log_epochs: LogEpochs, manifest: Manifest, finding: Finding, kind: AnomalyKind) -> Iterator[str]:
    """The tables that might have excused a finding, which is of ``kind``."""
    excuses, guarantees = kind.excuses, manifest.guarantees
    if excuses.unclean_election and guarantees.get("unclean_election") is True:
        yield "timeline"
    if excuses.retention is not Retention.NEVER and guarantees.get("retention") is True:
        yield "timeline"
    excuse = None if finding.excuse is None else EXCUSES[finding.excuse]
    if excuse is not None and excuse.if_resent and excuse.is_permitted(guarantees):
        yield "timeline"
    rule = rule_of(finding.kind)
    damaged = isinstance(rule, AboutDamage) and Parts(log_epochs).beside(finding).given_to(rule.may_be_damage)
    if excuses.fault or may_excuse(finding, kind) or damaged:
        yield "faults"


def is_unrecorded(
    states: States, configured: Configured, journal: FaultJournal, finding: Finding, kind: AnomalyKind
) -> bool:
    """Whether an unclean election that no table records may have given up a group's commit, or its generation.

    It takes a fault that takes a replica out, or was seen in another partition, and gives back nothing that had never
    been committed.
    """
    of_groups = kind.excuses.lossy_failure is LossyFailure.BETWEEN_COMMITS and finding.since_ns is not None
    if not of_groups or configured.guarantees.get("unclean_election") is not True:
        return False
    able = (fault for fault in journal.faults if fault["injected_ns"] is not None and _takes_a_replica_out(fault))
    begun = [fault["injected_ns"] for fault in able]
    begun += [election.time_ns for elections in states.unclean_elections.values() for election in elections]
    return any(time_ns <= (finding.time_ns or 0) for time_ns in begun)


def _takes_a_replica_out(fault: Row) -> bool:
    """Whether a fault may end a broker, or keep it from others; a clock does not, nor do links of clients alone."""
    cuts = cuts_brokers_off(fault)
    return not traits_of(fault["kind"]).moves_clock if cuts is None else cuts
