"""A record that a producer sends once is at one offset of its partition.

``duplicate``: acknowledgements, polls and the final leader's log name one value at two or more offsets. The clients
send every value once, so the log has it twice. The anomaly's offset is the lowest, the other the highest.

Severity: ``VIOLATION``; ``DOCUMENTED`` where ``run.json``'s guarantees say that producers are not idempotent, the value
was not sent in a transaction, whose producer always is (KIP-98), and something happened while it was sent that makes a
client send again (see :mod:`checkers.views.resends`). A leader that is deposed while a record waits for its
followers answers NOT_LEADER_OR_FOLLOWER although it has appended it (KAFKA-13574); librdkafka takes that as proof of
the contrary and sends the record again, retries allowed or not. An imported history does not say how its clients wait,
and the guarantee counts. Where a table that may hold the reason has a gap, it is ``INDETERMINATE``.

``DOCUMENTED``, too, where every copy is in the final leader's log, and each was sent under another producer id or in
another epoch of it: a leader compares sequence numbers within an epoch alone, so that it was the client who sent the
record anew. librdkafka does, where records of any partition time out, or OUT_OF_ORDER_SEQUENCE_NUMBER answers a request
behind one that failed (its issue 4953): it goes on in the next epoch, and sends again what may be stored already. Where
clients alone are known, or the final leader's log begins behind a copy, that is ``INDETERMINATE``, unless the answer
came too soon for a client to send again.

A client that learns that its record is lost rightly sends it again. So it is ``DOCUMENTED``, too, when the final
leader's log has the value at one offset at most, and the copies at the others were given up by an unclean election that
the configuration permits, or by lossy failures after the last of them was first seen (see
:mod:`checkers.views.unclean_elections`, :mod:`checkers.views.lossy_failures`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from checkers.inconsistent_offsets import Sighting, places, sightings
from checkers.views.configured import Configured, is_watched
from checkers.views.expected import knows_states
from checkers.views.fault_journal import FaultJournal
from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.resends import reason_to_resend
from checkers.views.row import Row
from checkers.views.states import States
from checkers.views.timeline import Timeline
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.poll_grounds import delivered
from checkers.wire_tap.send_grounds import acknowledged, sent_once
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
from harness.checker import Attribution, Evidence
from harness.excuse import Excuse
from harness.findings import RESENT_NS, Finding
from harness.model import TopicPartition
from harness.outcome import Word

DUPLICATE = AnomalyKind(
    name="duplicate",
    invariants=("C4",),
    meaning="One value, sent once and never retried, is at two or more offsets.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.VALUES, Needs.ENDS}),
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
    in_scenarios=InScenarios(word=Word.DUPLICATED, predicted_by_word=True, after_any_loss=False),
    permitted_by="",
)
KINDS = (DUPLICATE,)


def find(history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds) -> Iterator[Finding]:
    """Reference: every value of one run that is at two offsets."""
    copies: dict[tuple[TopicPartition, int], dict[int, list[Sighting]]] = defaultdict(lambda: defaultdict(list))
    for seen in sightings(history):
        copies[seen.where, seen.value][seen.offset].append(seen)
    for (place, value), offsets in places(history, logs, ends).items():
        if len(offsets) > 1:
            yield _duplicate(history, timeline, ends, (place, value), offsets=offsets, copies=copies[place, value])


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    return f"Value {finding.value} is there twice, at offset {finding.offset} and at offset {finding.other_offset}."


def permitted(finding: Finding, states: States, configured: Configured, journal: FaultJournal) -> str:
    """Why the configuration permits it, where producers are not idempotent; empty: nothing made one send again."""
    may_be_resent = finding.excuse is not None and reason_to_resend(states, configured, journal, finding) is not None
    if configured.guarantees.get("idempotent_producers") is not False or not (
        may_be_resent or not is_watched(configured)
    ):
        return ""
    return "producers are not idempotent (guarantees.idempotent_producers)"


def doubt(finding: Finding, configured: Configured, states: States) -> str:
    """Whether a client may have numbered it anew, where no log tells, and it may have been sent again; empty: no."""
    if finding.excuse != "unnumbered" or (knows_states(configured.guarantees) and not _is_deleted(finding, states)):
        return ""
    return "no log tells whether its producer had numbered it anew, so that no leader could know it again"


def _is_deleted(finding: Finding, states: States) -> bool:
    """Whether the final leader's log begins behind the first copy, so that it cannot have both."""
    place = TopicPartition(finding.topic, finding.partition)
    leader = states.final_leader(place)
    return leader is not None and (finding.offset or 0) < (states.ended[place][leader].log_start_offset or 0)


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on what names either offset, and on the producer's having sent the record once."""
    offsets = (finding.offset, finding.other_offset)
    named = [acknowledged(frames, finding, offset, finding.value) for offset in offsets]
    named += [delivered(frames, finding, offset, finding.value) for offset in offsets]
    return attributed(*named, sent_once(frames, finding))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The send, the first delivery from either offset, and what the replicas hold."""
    yield from witnesses.send(finding)
    yield from witnesses.reads(finding, finding.offset, finding.value)
    yield from witnesses.reads(finding, finding.other_offset, finding.value)
    yield from witnesses.holders(finding)


def _duplicate(
    history: History,
    timeline: Timeline,
    ends: PartitionEnds,
    record: tuple[TopicPartition, int],
    *,
    offsets: set[int],
    copies: Mapping[int, list[Sighting]],
) -> Finding:
    place, value = record
    held = {row["offset"]: row for row in ends.final_log(place) if row["intact"] and row["value"] == value}
    gone = {offset: seen for offset, seen in copies.items() if offset not in held}
    left = [offset for offset in offsets if offset in held or not _is_given_up(timeline, place, offset, copies[offset])]
    known = ends.by_partition[place].node is not None if place in ends.by_partition else False
    times = [min(one.time_ns for one in seen) for seen in gone.values()]
    sends = history.sends_of(place, value)
    since_ns = min((send.invoked_ns for send in sends), default=None)
    by_ns = min((send.completed_ns for send in sends if send.type == "ok" and send.offset in offsets), default=None)
    transactional = (place, value) in history.transactional
    at_once = since_ns is not None and by_ns is not None and by_ns - since_ns < RESENT_NS
    plain: Excuse | None = None if transactional or at_once else "unnumbered"
    if not transactional and _is_renumbered(held, offsets):
        plain = "renumbered"
    return Finding(
        history.run, "duplicate", *place, min(offsets), value,
        excuse="unclean" if len(left) < 2 else plain,
        row=min((one.row for seen in copies.values() for one in seen), default=None),
        time_ns=max(times) if times and known and len(held) < 2 else None,
        other_offset=max(offsets),
        since_ns=since_ns,
        by_ns=by_ns,
    )  # fmt: skip


def _is_renumbered(held: Mapping[int, Row], offsets: set[int]) -> bool:
    """Whether all copies are there, each of another producer id or epoch."""
    authors = {(row.get("producer_id"), row.get("producer_epoch")) for row in held.values()}
    is_numbered = all(None not in author for author in authors)
    return held.keys() == offsets and is_numbered and len(authors) == len(held)


def _is_given_up(timeline: Timeline, place: TopicPartition, offset: int, seen: Sequence[Sighting]) -> bool:
    """Whether an unclean election gave up the copy; in a sampled timeline, whether one may have."""
    epoch = min((one.leader_epoch for one in seen if one.leader_epoch is not None), default=None)
    later = any(
        epoch is not None and election.leader_epoch > epoch for election in timeline.unclean_elections.get(place, ())
    )
    first_ns = min(one.time_ns for one in seen)
    return (timeline.sampled and later) or timeline.given_up(place, epoch, offset, first_ns)
