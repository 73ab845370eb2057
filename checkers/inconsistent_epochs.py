"""The leader epoch that a fetch returns with a record is the one that the record has in the log.

``inconsistent-epochs``: a poll, of the final read or under load, was given a record with another leader epoch than the
final leader's log has it in (``PartitionLeaderEpoch``, which no checksum covers). A consumer names that epoch in its
next fetch, and the leader answers by it whether their logs diverge (KIP-320).

The epochs of a log follow each other, so the first and the last offset at which each was returned are enough: that
range must lie within the offsets that the log has in the epoch, as far as the log reaches. Logs with records that are
damaged, or without epochs (message formats 0 and 1), are not compared; :mod:`checkers.altered_record` compares the
records. One anomaly for each epoch: the first offset.

A consumer is given only records below the high watermark, which keep their place and epoch unless they are lost. So
polls under load are not judged in a partition in which a record that was read is gone, or has changed: that is a
finding of its own (``vanished-read``, ``inconsistent-offsets``), and another record lies there now.

Severity: ``VIOLATION``; of polls under load ``DOCUMENTED`` when an unclean election of a later epoch, or lossy failures
since (see :mod:`checkers.views.lossy_failures`), may have given the record up, so that it was sent again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from checkers.inconsistent_offsets import INCONSISTENT_OFFSETS
from checkers.vanished_read import VANISHED_READ
from checkers.views.conclusion import Conclusion
from checkers.views.log_epochs import LogEpochs
from checkers.views.states import States
from harness.anomaly import (
    NO_WORD,
    AnomalyKind,
    CauseAt,
    Excuses,
    Found,
    LossyFailure,
    Needs,
    Retention,
    Sampled,
    Unseen,
)
from harness.checker import Evidence
from harness.facts import ClientFacts, LogEpoch, ReadEpoch
from harness.findings import Finding
from harness.model import TopicPartition

INCONSISTENT_EPOCHS = AnomalyKind(
    name="inconsistent-epochs",
    invariants=("R6",),
    meaning="A poll named another leader epoch for a record than the log has it in.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.REPLICA_LOGS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.AFTER_KNOWN,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (INCONSISTENT_EPOCHS,)

_GONE = (VANISHED_READ.name, INCONSISTENT_OFFSETS.name)


def is_part_of(finding: Finding, other: Finding, *, other_alone_is_excused: bool) -> bool:
    """Epochs that polls under load named are not judged where a record that was read is gone, whatever took it."""
    del other_alone_is_excused
    here = (other.topic, other.partition) == (finding.topic, finding.partition)
    return finding.time_ns is not None and here and other.kind in _GONE


def conclude(states: States, log_epochs: LogEpochs, client_facts: ClientFacts) -> Iterator[Conclusion]:
    """Every breach in one run."""
    for read in sorted(client_facts.read_epochs):
        place = TopicPartition(read.topic, read.partition)
        node = states.final_leader(place)
        log = [] if node is None else log_epochs.by_replica.get(place, {}).get(node, [])
        if node is not None and log and all(one.leader_epoch >= 0 and one.damaged is None for one in log):
            offset = _misnamed(read, log)
            if offset is not None:
                yield _conclusion(states, log_epochs, place, node, read, offset=offset)


def _misnamed(read: ReadEpoch, log: Sequence[LogEpoch]) -> int | None:
    """The first offset at which the polls named an epoch that the log does not have there."""
    first = max(read.first, min(one.first for one in log))
    last = min(read.last, max(one.last for one in log))
    if first > last:
        return None
    own = next((one for one in log if one.leader_epoch == read.leader_epoch), None)
    if own is None or first < own.first:
        return first
    return last if last > own.last else None


def _conclusion(
    states: States, log_epochs: LogEpochs, place: TopicPartition, node: int, read: ReadEpoch, *, offset: int
) -> Conclusion:
    about: dict[str, int | str] = {"node": node, "topic": place.topic, "partition": place.partition, "offset": offset}
    held = [x.leader_epoch for x in log_epochs.by_replica[place][node] if x.first <= offset <= x.last]
    found = f"of epoch {held[0]}" if held else "of another epoch"
    known: dict[str, Any] = {"offset": offset, "leader_epoch": read.leader_epoch, "node": node}
    if not read.final:
        given_up = any(epoch > read.leader_epoch for epoch in states.unclean.get(place, ()))
        known |= {"time_ns": read.begin_ns, "excuse": "unclean" if given_up else None}
    who = "The final read" if read.final else "A consumer"
    return Conclusion(
        states.finding("inconsistent-epochs", place, **known),
        f"{who} was given the record at offset {offset} as one of leader epoch {read.leader_epoch}, and in "
        f"the final leader's log it is {found}.",
        (Evidence("replica_logs", about, f"node {node}'s log holds a record {found} at offset {offset}"),),
    )
