"""What was committed stays committed, each epoch has one leader, and acknowledgements and reads wait for the commit.

* ``hw-regression``: a leader's high watermark fell within its term; or a leader began its epoch with a log that ended
  below the *true high watermark*, the highest that any leader of an earlier epoch held. (That the new leader's own
  watermark starts lower and catches up is how Kafka works, and no anomaly.) A log end below it counts once: from then
  on the true high watermark is what the new leader has.
  The high watermarks that clients were told (:mod:`checkers.views.metadata`) must not fall either, in the order of the
  leader epochs that the answers name, and within an epoch in that of the questions. A stale answer of a leader that
  was deposed is no breach: it names its epoch, in which no more was committed than its successor began with, and a
  leader since Kafka 2.2 answers only when its watermark has come to where its log ended then (KIP-207).
* ``two-leaders``: two brokers led one partition in the same leader epoch.
* ``unjustified-ack``: a send with acks=all was acknowledged at offset o, and by then no leader had had a high watermark
  above o; or no leader of the time of the send ever had one in that term.
* ``uncommitted-read``: a consumer was delivered a record at offset o, and by then no leader had had a high watermark
  above o (C9).

Brokers write a row at every change, on the clients' clock, and write a new high watermark before any response carries
it. A row that may be missing never makes an anomaly. A killed leader's last row may be, so an acknowledgement is judged
only when every leader that might have given it wrote a later row, or was started anew before the send began; and a
delivery only when every leader of that time wrote a later row. A sampled timeline does not show the time of a change,
so more evidence is required, and less is found: see :mod:`checkers.views.sampled_timelines`.

Severity: ``VIOLATION``. A ``hw-regression`` at the beginning of an epoch is ``DOCUMENTED`` when that epoch's election
was unclean, or no leader began between an unclean one and it, and the configuration permits such
elections. Of what clients were told no election is known, nor what the brokers are: a fall from one epoch to another
is ``INDETERMINATE`` there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from checkers.views.history import History
from checkers.views.metadata import Metadata
from checkers.views.row import ALL, Read, Row, Send, where
from checkers.views.terms import Term
from checkers.views.timeline import Timeline
from checkers.views.watermark_history import WatermarkHistory
from checkers.views.witnesses import Witnesses
from harness.anomaly import (
    NO_WORD,
    NOTHING,
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
from harness.findings import Finding
from harness.model import NO_NODE, TopicPartition

HW_REGRESSION = AnomalyKind(
    name="hw-regression",
    invariants=("R3", "T1", "T2", "T14"),
    meaning=(
        "A leader's high watermark fell, or a leader began with a log that ended below what an earlier "
        "leader had committed."
    ),
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset(),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.RANGE,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.BEFORE_SEEN,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.SOME, unseen=Unseen.WATERMARK_GIVEN_UP),
    in_scenarios=NO_WORD,
    permitted_by="",
    shown_by_metadata=True,
)

TWO_LEADERS = AnomalyKind(
    name="two-leaders",
    invariants=("T3", "T14"),
    meaning="Two brokers led one partition in the same leader epoch.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset(),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.SOME, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

UNJUSTIFIED_ACK = AnomalyKind(
    name="unjustified-ack",
    invariants=("T9", "T11"),
    meaning="A send with acks=all was acknowledged at an offset that no leader's high watermark had passed.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE, Needs.ENDS, Needs.TIMES}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.SOME_WITH_EVERY_LEADER, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

UNCOMMITTED_READ = AnomalyKind(
    name="uncommitted-read",
    invariants=("C9",),
    meaning="A consumer was given a record that no leader had committed.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE, Needs.TIMES}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.SOME_WITH_EVERY_LEADER, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (HW_REGRESSION, TWO_LEADERS, UNJUSTIFIED_ACK, UNCOMMITTED_READ)


def find(history: History, timeline: Timeline, metadata: Metadata) -> Iterator[Finding]:
    """Reference: everything in one run's timeline that contradicts its leaders."""
    yield from _falls_within_a_term(history, timeline)
    yield from _falls_in_answers(metadata)
    for place in timeline.terms:
        terms = timeline.leader_terms(place)
        yield from _short_logs(timeline, place, terms)
        yield from _two_leaders(history, place, terms)
    watermarks = WatermarkHistory(timeline.rows)
    for send in filter(claims_replication, history.sends):
        if is_accounted(timeline, send) and not (
            was_passed(timeline, send) if timeline.sampled else is_justified(timeline, send, watermarks)
        ):
            yield _unjustified(history, send, max(term.leader_epoch for term in timeline.leaders_during(send)))
    yield from _uncommitted(history, timeline, watermarks)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    if finding.kind == "two-leaders":
        return f"Nodes {finding.node} and {finding.other_node} both led in epoch {finding.leader_epoch}."
    if finding.kind == "uncommitted-read":
        value = "a record that is none of the workload's" if finding.value is None else f"value {finding.value}"
        return f"A consumer was delivered {value} at offset {finding.offset}, which no leader had committed by then."
    if finding.kind == "unjustified-ack":
        return (
            f"Value {finding.value} was acknowledged with acks=all at offset {finding.offset}, and by then no leader "
            "of that time had a high watermark above it."
        )
    if finding.node == NO_NODE:
        return (
            f"The leader of epoch {finding.leader_epoch} told clients a high watermark of {finding.offset}, although "
            f"one of {finding.until} had been told in that epoch or an earlier one."
        )
    return (
        f"Node {finding.node}, leader in epoch {finding.leader_epoch}, fell back to {finding.offset}, "
        f"although everything below {finding.until} had been committed."
    )


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The rows of the leaders concerned."""
    if finding.node == NO_NODE:
        for sequence, mark in ((finding.other_offset, finding.until), (finding.row, finding.offset)):
            row = {"node": NO_NODE, "incarnation": 0, "sequence": sequence or 0}
            yield Evidence("timeline", row, f"clients were told the high watermark {mark}")
        return
    if finding.kind == "hw-regression" and finding.node is not None:
        row = {"node": finding.node, "incarnation": finding.incarnation or 0, "sequence": finding.row or 0}
        yield Evidence("timeline", row, f"node {finding.node} led with no more than offset {finding.offset} here")
        yield from witnesses.committed(finding, None)
        yield from witnesses.cuts(finding)
        return
    if finding.kind == "uncommitted-read":
        yield from witnesses.reads(finding, finding.offset, finding.value)
    yield from witnesses.send(finding)
    yield from witnesses.leader(finding, finding.leader_epoch)
    yield from witnesses.committed(finding, None)


def _falls_within_a_term(history: History, timeline: Timeline) -> Iterator[Finding]:
    terms: dict[tuple[object, ...], list[Row]] = {}
    for row in timeline.rows:
        if row["kind"] == "state" and row["role"] == "leader":
            key = (where(row), row["node"], row["incarnation"], row["leader_epoch"])
            terms.setdefault(key, []).append(row)
    for group in terms.values():
        for before, after in pairwise(sorted(group, key=lambda r: int(r["sequence"]))):
            if (after["high_watermark"] or 0) < (before["high_watermark"] or 0):
                yield _fall(history, before, after)


def _falls_in_answers(metadata: Metadata) -> Iterator[Finding]:
    for place, told in metadata.watermarks.items():
        for before, after in pairwise(told):
            if after["high_watermark"] < before["high_watermark"]:
                yield Finding(
                    metadata.run, "hw-regression", *place,
                    offset=after["high_watermark"],
                    leader_epoch=after["leader_epoch"],
                    excuse=None if after["leader_epoch"] == before["leader_epoch"] else "elected",
                    row=after["sequence"],
                    time_ns=after["time_ns"],
                    node=NO_NODE,
                    incarnation=0,
                    other_offset=before["sequence"],
                    until=before["high_watermark"],
                )  # fmt: skip


def _fall(history: History, before: Row, after: Row) -> Finding:
    return Finding(
        history.run, "hw-regression", *where(after),
        offset=after["high_watermark"] or 0,
        leader_epoch=after["leader_epoch"],
        row=after["sequence"],
        time_ns=after["time_ns"],
        node=after["node"],
        incarnation=after["incarnation"],
        until=before["high_watermark"],
    )  # fmt: skip


def _short_logs(timeline: Timeline, place: TopicPartition, terms: list[Term]) -> Iterator[Finding]:
    true_high_watermark = 0
    uncleanly = {
        epoch
        for election in timeline.unclean_elections.get(place, ())
        for epoch in (election.leader_epoch, election.taken)
    }
    for term in terms:
        if term.first_log_end < true_high_watermark:
            yield Finding(
                timeline.run, "hw-regression", *place,
                offset=term.first_log_end,
                leader_epoch=term.leader_epoch,
                excuse="unclean" if term.leader_epoch in uncleanly else None,
                row=term.first_sequence,
                time_ns=term.begin_ns,
                node=term.node,
                incarnation=term.incarnation,
                until=true_high_watermark,
            )  # fmt: skip
        true_high_watermark = max(min(true_high_watermark, term.first_log_end), term.high_watermark)


def _two_leaders(history: History, place: TopicPartition, terms: list[Term]) -> Iterator[Finding]:
    by_epoch: dict[int, list[Term]] = {}
    for term in terms:
        by_epoch.setdefault(term.leader_epoch, []).append(term)
    for epoch, group in by_epoch.items():
        nodes = sorted({term.node for term in group})
        if len(nodes) > 1:
            yield Finding(
                history.run, "two-leaders", *place,
                leader_epoch=epoch,
                time_ns=max(term.begin_ns for term in group),
                node=nodes[0],
                other_node=nodes[-1],
            )  # fmt: skip


def claims_replication(send: Send) -> bool:
    """Whether the send was acknowledged as in every in-sync replica, at a known offset."""
    return send.type == "ok" and send.acks == ALL and send.offset is not None


def is_justified(timeline: Timeline, send: Send, watermarks: WatermarkHistory) -> bool:
    """Whether a leader of the time of the send had a high watermark above the record, and any leader by its end.

    A sampled timeline does not show by when.
    """
    own = _passed(send, timeline.leaders_during(send))
    return own and (timeline.sampled or watermarks.had_passed(send.where, send.offset or 0, send.completed_ns))


def was_passed(timeline: Timeline, send: Send) -> bool:
    """Whether any leader of any time had a high watermark above the record."""
    return _passed(send, timeline.leader_terms(send.where))


def _passed(send: Send, terms: list[Term]) -> bool:
    return send.offset is not None and any(term.high_watermark > send.offset for term in terms)


def is_accounted(timeline: Timeline, send: Send) -> bool:
    """Whether every leader of the time of the send is known, and wrote a row after it."""
    terms = timeline.leaders_during(send)
    return bool(terms) and all(
        _wrote_after(timeline, term, send.completed_ns) or _is_over(timeline, term, send.invoked_ns) for term in terms
    )


def _wrote_after(timeline: Timeline, term: Term, time_ns: int) -> bool:
    """Whether a leader wrote a row after that time; in a sampled timeline: was seen to lead on."""
    return (term.last_row_ns if timeline.sampled else timeline.lives[term.node, term.incarnation].last_ns) > time_ns


def _is_over(timeline: Timeline, term: Term, time_ns: int) -> bool:
    """Whether the leader's node had been started anew by then."""
    next_ns = timeline.lives[term.node, term.incarnation].next_ns
    return next_ns is not None and next_ns <= time_ns


def _unjustified(history: History, send: Send, leader_epoch: int) -> Finding:
    return Finding(
        history.run, "unjustified-ack", *send.where,
        offset=send.offset,
        value=send.value,
        leader_epoch=leader_epoch,
        row=send.row,
        time_ns=send.completed_ns,
        process=send.process,
        acks=send.acks,
    )  # fmt: skip


def _uncommitted(history: History, timeline: Timeline, watermarks: WatermarkHistory) -> Iterator[Finding]:
    """The first delivery of every record at an offset."""
    for (place, offset, value), reads in history.delivered.items():
        first = reads[0]
        led = timeline.leaders_between(place, first.time_ns, first.time_ns)
        accounted = all(_wrote_after(timeline, term, first.time_ns) for term in led)
        if led and accounted and not _was_committed(timeline, first, watermarks):
            yield Finding(
                history.run, "uncommitted-read", *place,
                offset=offset,
                value=value,
                leader_epoch=max(term.leader_epoch for term in led),
                row=first.row,
                time_ns=first.time_ns,
            )  # fmt: skip


def _was_committed(timeline: Timeline, read: Read, watermarks: WatermarkHistory) -> bool:
    """Whether a leader had a high watermark above the record by then; in a sampled timeline: ever."""
    if timeline.sampled:
        return any(term.high_watermark > read.offset for term in timeline.leader_terms(read.where))
    return watermarks.had_passed(read.where, read.offset, read.time_ns)
