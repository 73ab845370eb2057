"""Replicas hold the same records below their high watermarks.

``replica-divergence``: at one offset of a partition the replicas' logs disagree,

* either among the replicas for which the offset is committed (at or above their log start, below their own high
  watermark and log end as collected at the end): one holds another (leader epoch, value, batch checksum) than another,
  or lacks the record (``LogMatching``). Where the run came to rest, a replica that is up and in the final leader's ISR
  is compared over all of its log, whatever its high watermark (R2);
* or anywhere: two replicas hold different records of the *same* leader epoch there, which one leader cannot have
  written. Records without an epoch (message formats 0 and 1) do not count: they may be of different ones.

One anomaly per offset. Its value and leader epoch are those of the record of the oldest epoch there, the side that
the newer leader's record should have replaced (or that should have survived); the evidence names every side.

Severity: ``VIOLATION``. ``DOCUMENTED`` when an unclean election gave up the record of the oldest epoch there (see
:mod:`checkers.views.unclean_elections`), one of the replicas has not heard of that election's epoch in the end, and the
configuration permits such elections. A replica that has heard of it must have come to agree. ``DOCUMENTED``, too, when
only logs disagree that a fault has damaged unnoticed (see :mod:`checkers.views.rotten_logs`): by what is damaged there,
and by what they lack from there on; their sound records are compared as ever. And when only records of another cluster
disagree that a fault has put into a log of the partition, where the others have one of the same leader epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkers.views.log_epochs import LogEpochs
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import Row, where
from checkers.views.run_demands import RunDamage, RunDemands
from checkers.views.timeline import Timeline
from checkers.views.witnesses import Witnesses
from harness.anomaly import (
    AnomalyKind,
    CauseAt,
    Excuses,
    Found,
    InScenarios,
    LossyFailure,
    Needs,
    Retention,
    Sampled,
    Unseen,
)
from harness.checker import Evidence
from harness.findings import Finding
from harness.model import TopicPartition
from harness.outcome import Word
from harness.payload import FOREIGN_VALUE

REPLICA_DIVERGENCE = AnomalyKind(
    name="replica-divergence",
    invariants=("R1", "R1b", "R2", "T14"),
    meaning=("Replicas hold different records at one committed offset, or two records of the same leader epoch."),
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.REPLICA_LOGS}),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.NEVER,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.REPLICA_BEHIND),
    in_scenarios=InScenarios(word=Word.DIVERGED, predicted_by_word=True, after_any_loss=False),
    permitted_by="",
    shown_by_logs=True,
)
KINDS = (REPLICA_DIVERGENCE,)


def find(timeline: Timeline, logs: ReplicaLogs, demands: RunDemands, damage: RunDamage) -> Iterator[Finding]:
    """Reference: every offset of one run at which replicas disagree."""
    bounds, heard = _committed_ranges(timeline, demands), _heard(timeline)
    for place, offsets in logs.logged.items():
        rot = _rot(logs, damage, place)
        for offset, records in offsets.items():
            if _disagree(offset, records, bounds.get(place, {}), {}):
                still = _disagree(offset, records, bounds.get(place, {}), rot, swapped=place in damage.swapped)
                yield _divergence(timeline, place, offset, records, heard.get(place, -1), damaged=not still)


def may_be_damage(finding: Finding, log_epochs: LogEpochs) -> bool:
    """Whether replicas disagree where one of their logs is damaged, or behind that, or another cluster's."""
    if finding.offset is None:
        return False
    if (finding.other_value or 0) >= FOREIGN_VALUE:
        return True
    logs = log_epochs.by_replica.get(TopicPartition(finding.topic, finding.partition), {})
    damaged = [one.damaged for epochs in logs.values() for one in epochs if one.damaged is not None]
    return min(damaged, default=finding.offset + 1) <= finding.offset


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    return f"The replicas' logs disagree about offset {finding.offset}; see the evidence for every side."


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """What every replica holds there, which node cut it off, and after which fault."""
    yield from witnesses.holders(finding)
    yield from witnesses.cuts(finding)
    yield from witnesses.fault(finding)


def _committed_ranges(timeline: Timeline, demands: RunDemands) -> dict[TopicPartition, dict[int, range]]:
    found: dict[TopicPartition, dict[int, range]] = {}
    for row in timeline.rows:
        if row["kind"] == "final" and row["topic"] is not None and row["high_watermark"] is not None:
            ends = (
                [row["log_end_offset"]]
                if _is_at_rest(timeline, demands, row)
                else [row["high_watermark"], row["log_end_offset"]]
            )
            end = min(offset for offset in ends if offset is not None)
            found.setdefault(where(row), {})[row["node"]] = range(row["log_start_offset"] or 0, end)
    return found


def _is_at_rest(timeline: Timeline, demands: RunDemands, end: Row) -> bool:
    """Whether a replica has all that its leader has: it is up, and its leader counts it as in sync."""
    leader = timeline.final_leaders.get(where(end))
    up = end["role"] != "offline" and end["log_end_offset"] is not None
    return demands.settled and up and leader is not None and end["node"] in (leader["isr"] or ())


def _heard(timeline: Timeline) -> dict[TopicPartition, int]:
    """The oldest leader epoch that any replica of a partition is in at the end; -1: one's is not known."""
    found: dict[TopicPartition, list[int]] = {}
    for row in timeline.rows:
        if row["kind"] == "final" and row["topic"] is not None:
            found.setdefault(where(row), []).append(-1 if row["leader_epoch"] is None else row["leader_epoch"])
    return {place: min(epochs) for place, epochs in found.items()}


def _rot(logs: ReplicaLogs, damage: RunDamage, place: TopicPartition) -> dict[int, int]:
    """The nodes whose logs a fault has damaged unnoticed, and the lowest offset at which they are."""
    found: dict[int, int] = {}
    for offset, records in logs.logged[place].items():
        for row in records:
            if not row["intact"] and (place, row["node"]) in damage.rotten:
                found[row["node"]] = min(offset, found.get(row["node"], offset))
    return found


def _disagree(
    offset: int, records: Sequence[Row], committed: dict[int, range], rot: dict[int, int], *, swapped: bool = False
) -> bool:
    """Whether the replicas disagree, whatever is damaged in logs that are rotten, and missing there behind it.

    ``swapped``: of records that are of another cluster only the leader epoch counts.
    """
    bound = {node for node, offsets in committed.items() if offset in offsets}
    whole = {node for node in bound if node not in rot or offset < rot[node]}
    sound = [row for row in records if row["intact"] or row["node"] not in rot]
    compared = [row for row in sound if row["node"] in bound]
    sides = {_content(row) for row in compared if not (swapped and _is_foreign(row))}
    epochs = {row["leader_epoch"] for row in compared}
    lacking = bool(compared) and sum(row["node"] in whole for row in compared) < len(whole)
    known = [row for row in sound if row["leader_epoch"] >= 0 and not (swapped and _is_foreign(row))]
    every = {_content(row) for row in known}
    return lacking or len(epochs) > 1 or len(sides) > 1 or len(every) > len({row["leader_epoch"] for row in known})


def _is_foreign(row: Row) -> bool:
    return (row["value"] or 0) >= FOREIGN_VALUE


def _content(row: Row) -> tuple[int, int | None, int]:
    return row["leader_epoch"], row["value"], row["batch_crc"]


def _divergence(
    timeline: Timeline, place: TopicPartition, offset: int, records: Sequence[Row], heard: int, *, damaged: bool
) -> Finding:
    epoch, value, _ = min((_content(row) for row in records), key=_age)
    unheard = [election for election in timeline.unclean_elections.get(place, ()) if election.leader_epoch > heard]
    return Finding(
        timeline.run, "replica-divergence", *place,
        offset=offset,
        value=value,
        leader_epoch=epoch,
        excuse="damage" if damaged else "unclean" if any(one.gave_up(epoch, offset) for one in unheard) else None,
        other_value=max((_content(row) for row in records), key=_age)[1],
    )  # fmt: skip


def _age(content: tuple[int, int | None, int]) -> tuple[int, bool, int, int]:
    epoch, value, crc = content
    return epoch, value is not None, value or 0, crc
