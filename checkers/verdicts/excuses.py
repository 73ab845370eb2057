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

from checkers.views.conclusion import RunFacts
from checkers.views.cuts import links_of
from checkers.views.lossy_failures import may_excuse
from checkers.views.recorded_load import recorded_load
from checkers.views.row import Row
from faults import traits_of
from harness.anomaly import AnomalyKind, LossyFailure, Retention
from harness.downtime import in_force
from harness.excuse import EXCUSES
from harness.fault import ProcessEffect
from harness.findings import Finding
from harness.history.run_directory import Manifest
from harness.model import CLIENTS, TopicPartition
from harness.payload import FOREIGN_VALUE


def is_watched(run: RunFacts) -> bool:
    """Whether brokers were there to be asked; not of an imported history, which only clients recorded."""
    return run.wanted is None or run.wanted.brokers


def is_unobserved(run: RunFacts, manifest: Manifest, finding: Finding, kind: AnomalyKind) -> bool:
    """Whether the configuration permits what would excuse it, and no broker was there to tell of that."""
    return not is_watched(run) and "timeline" in tables_of_excuses(run, manifest, finding, kind)


def tables_of_excuses(run: RunFacts, manifest: Manifest, finding: Finding, kind: AnomalyKind) -> Iterator[str]:
    """The tables that might have excused a finding, which is of ``kind``."""
    excuses, guarantees = kind.excuses, manifest.guarantees
    if excuses.unclean_election and guarantees.get("unclean_election") is True:
        yield "timeline"
    if excuses.retention is not Retention.NEVER and guarantees.get("retention") is True:
        yield "timeline"
    excuse = None if finding.excuse is None else EXCUSES[finding.excuse]
    if excuse is not None and excuse.if_resent and excuse.is_permitted(guarantees):
        yield "timeline"
    if excuses.fault or may_excuse(finding, kind) or _may_be_rot(run, finding):
        yield "faults"


def _may_be_rot(run: RunFacts, finding: Finding) -> bool:
    """Whether replicas disagree where one of their logs is damaged, or behind that, or another cluster's."""
    if finding.kind != "replica-divergence" or finding.offset is None:
        return False
    if (finding.other_value or 0) >= FOREIGN_VALUE:
        return True
    logs = run.logs.get(TopicPartition(finding.topic, finding.partition), {})
    damaged = [one.damaged for epochs in logs.values() for one in epochs if one.damaged is not None]
    return min(damaged, default=finding.offset + 1) <= finding.offset


def is_unrecorded(run: RunFacts, finding: Finding, kind: AnomalyKind) -> bool:
    """Whether an unclean election that no table records may have given up a group's commit, or its generation.

    It takes a fault that takes a replica out, or was seen in another partition, and gives back nothing that had never
    been committed.
    """
    of_groups = kind.excuses.lossy_failure is LossyFailure.BETWEEN_COMMITS and finding.since_ns is not None
    if not of_groups or run.guarantees.get("unclean_election") is not True:
        return False
    able = (fault for fault in run.faults if fault["injected_ns"] is not None and _takes_a_replica_out(fault))
    begun = [fault["injected_ns"] for fault in able]
    begun += [election.time_ns for elections in run.unclean_elections.values() for election in elections]
    return any(time_ns <= (finding.time_ns or 0) for time_ns in begun)


_LEARNS_NS = 5_000_000_000
"""How long a leader that is back may take, at the most, to learn of its successor: longer than a session."""


def may_be_deposed(run: RunFacts, finding: Finding) -> bool:
    """Whether a coordinator that another one had replaced may have told a group of an earlier commit.

    It answers from what it knows, without asking any replica, until it learns of its successor; so does Kafka's. That
    takes a fault that cuts brokers off from one another, or has one stand still, since the commit that is missing; and
    it tells nothing that had never been committed. Likewise a former leader of a partition gives a share group what it
    takes to be free, although its successor has confirmed that the group is done with it: to a consumer that polled for
    the first time shortly after such a fault, or the election of the successor, or before.
    """
    if finding.kind == "lost-acknowledgement":
        return _may_be_given_by_a_former_leader(run, finding)
    if finding.kind != "lost-commit" or finding.since_ns is None or finding.time_ns is None:
        return False
    return any(
        _may_depose(fault)
        and in_force(fault["injected_ns"], fault["heal_proven_ns"], finding.since_ns, finding.time_ns)
        for fault in run.faults
    )


def _may_be_given_by_a_former_leader(run: RunFacts, finding: Finding) -> bool:
    if finding.since_ns is None or finding.by_ns is None or finding.time_ns is None:
        return False
    since_ns, until_ns = finding.by_ns - _LEARNS_NS, finding.time_ns
    decided = run.decided.get(TopicPartition(finding.topic, finding.partition), ())
    later = [one.begin_ns for one in decided if one.kind == "election" and (one.leader_epoch or 0) > 0]
    successors = [time_ns for time_ns in later if time_ns <= finding.since_ns]
    stays = any(
        _may_depose(fault) and in_force(fault["injected_ns"], fault["heal_proven_ns"], since_ns, until_ns)
        for fault in run.faults
    )
    return bool(successors) and (stays or max(successors) >= since_ns)


def may_be_archived(manifest: Manifest, finding: Finding) -> bool:
    """Whether a share group may have been given a record, unseen, as often as its limit permits.

    A delivery that no consumer reports, because its answer was lost, ends with its lock, which takes as long as that.
    """
    if finding.kind != "withheld-record" or finding.since_ns is None or finding.time_ns is None:
        return False
    load = recorded_load(manifest.configuration)
    limits = None if load is None else load.share_limits
    if limits is None:
        return True
    unseen = (finding.time_ns - finding.since_ns) // round(limits.lock_s * 1e9)
    return (finding.until or 0) + unseen >= limits.deliveries


def _may_depose(fault: Row) -> bool:
    cuts = _cuts_brokers_off(fault)
    return traits_of(fault["kind"]).process is ProcessEffect.PAUSES if cuts is None else cuts


def _takes_a_replica_out(fault: Row) -> bool:
    """Whether a fault may end a broker, or keep it from others; a clock does not, nor do links of clients alone."""
    cuts = _cuts_brokers_off(fault)
    return not traits_of(fault["kind"]).moves_clock if cuts is None else cuts


def _cuts_brokers_off(fault: Row) -> bool | None:
    """Whether a fault cuts links other than those of clients; None: it cuts none."""
    links = links_of(fault)
    return None if links is None else any(CLIENTS not in link for link in links)
