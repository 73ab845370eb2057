"""The answers to questions about runs: findings, ends of partitions and replicas, counts.

Both engines produce them, ``spark_analysis`` with Spark and the references in ``checkers`` in plain Python;
``checkers.verdicts.judge`` judges them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.excuse import Excuse
from harness.facts import Facts
from harness.history.schema import ColumnType

KEPT_PER_GROUP = 25
"""How many findings of one kind, partition and excuse reach the driver; the rest are only counted."""


class Finding(NamedTuple):
    """One observation. Fields that do not apply are None.

    Attributes:
        run: the run's id.
        kind: the anomaly's kind, as in ``docs/anomalies.md``.
        topic: with ``partition`` where; "" and -1 for a finding about a node.
        offset: where; of ``hw-regression`` the lower watermark, of ``poll-skip`` the first offset skipped.
        value: the record that is missing, wrong or there twice.
        leader_epoch: of the record where any evidence has it; else of the leader concerned.
        excuse: see :data:`harness.excuse.EXCUSES`; None: none.
        row: the row that shows it best, by its position in the history or in the node's timeline.
        time_ns: when that row was written.
        process: the client process of that row, where the row is not enough.
        acks: what the sender waited for.
        node: the broker concerned.
        incarnation: of ``node``, where ``row`` is a position in its timeline.
        other_node: the other broker concerned.
        other_offset: the other offset concerned: where else the value is, or what came before.
        other_value: the other value concerned: what is there instead.
        until: of ``hw-regression`` the higher watermark; of ``poll-skip`` the offset delivered after the gap, of
            ``group-skip`` the one that was committed; of a finding about a group's generations the later of them; of
            one about share groups the row that confirmed that the group is done with the record, or the delivery count;
            of ``wrong-deletion`` where the log begins, or should; of ``unanswered-deletion`` the answer's error code.
        committed: whether the record is known to have been below a high watermark.
        since_ns: when the send of the missing record began, and of several values that of the first: before that it
            cannot have been lost; of ``poll-skip`` when the delivery before was written, of ``lost-commit`` when the
            commit was acknowledged, of a finding about a group's generations when a member of one subscribed, of a
            finding about a transaction when its record's send began, of ``lost-acknowledgement`` when that was
            confirmed, of ``group-repeat`` when the member was given the partition, of a finding about a DeleteRecords
            when that was sent; None: not known.
        by_ns: by when what explains it must have happened: of ``duplicate`` when its send was first acknowledged, of
            ``inconsistent-offsets`` and ``lost-write`` when another value was first known to be there; of
            ``lost-acknowledgement`` when the consumer first polled; of ``wrong-deletion`` when its client was answered;
            of ``lost-commit``, where clients commit by themselves, when the first of them may have: from then on a
            commit may expire; None: not known, or no client was answered.
        total: how many findings its group has; see :data:`KEPT_PER_GROUP`.
        earliest_ns: the lowest ``time_ns`` of its group; ``latest_ns`` the highest.
        earliest_since_ns: the lowest ``since_ns`` of its group; ``latest_since_ns`` the highest.
    """

    run: str
    kind: str
    topic: str
    partition: int
    offset: int | None = None
    value: int | None = None
    leader_epoch: int | None = None
    excuse: Excuse | None = None
    row: int | None = None
    time_ns: int | None = None
    process: int | None = None
    acks: int | None = None
    node: int | None = None
    incarnation: int | None = None
    other_node: int | None = None
    other_offset: int | None = None
    other_value: int | None = None
    until: int | None = None
    committed: bool | None = None
    since_ns: int | None = None
    by_ns: int | None = None
    total: int = 1
    earliest_ns: int | None = None
    latest_ns: int | None = None
    earliest_since_ns: int | None = None
    latest_since_ns: int | None = None


COLUMNS: Mapping[str, ColumnType] = {
    "run": "string",
    "kind": "string",
    "topic": "string",
    "partition": "int32",
    "offset": "int64",
    "value": "int64",
    "leader_epoch": "int32",
    "excuse": "string",
    "row": "int64",
    "time_ns": "int64",
    "process": "int32",
    "acks": "int32",
    "node": "int32",
    "incarnation": "int32",
    "other_node": "int32",
    "other_offset": "int64",
    "other_value": "int64",
    "until": "int64",
    "committed": "bool",
    "since_ns": "int64",
    "by_ns": "int64",
}
"""The columns of every question's answer, in order; the totals of groups come when all answers are put together."""


def position(finding: Finding) -> tuple[Any, ...]:
    """The order in which findings of a group are kept and shown: by offset, unknown ones last, then by row."""
    return (
        finding.offset is None, finding.offset or 0,
        finding.value is None, finding.value or 0,
        finding.leader_epoch is None, finding.leader_epoch or 0,
        finding.row is None, finding.row or 0,
        finding.node is None, finding.node or 0,
        finding.incarnation is None, finding.incarnation or 0,
        finding.other_node is None, finding.other_node or 0,
    )  # fmt: skip


RANGES_KEPT = 100
"""How many runs of consecutive offsets of one kind, partition and excuse reach the driver, the lowest ones."""


class FindingRange(NamedTuple):
    """Consecutive offsets at each of which there are findings of one kind, partition and excuse.

    Attributes:
        first: the lowest of the offsets; ``end``: one more than the highest.
        number: how many findings there are at these offsets.
        lowest: the lowest value that they are about, ``highest`` the highest; None where they name none.
        ranges: how many such ranges there are of the kind, partition and excuse; see :data:`RANGES_KEPT`.
        placed: how many findings are in all of these ranges; the others name no offset.
    """

    run: str
    kind: str
    topic: str
    partition: int
    excuse: Excuse | None
    first: int
    end: int
    number: int
    lowest: int | None
    highest: int | None
    ranges: int
    placed: int


RESENT_NS = 50_000_000
"""An answer within this time cannot be of a record that its client has sent twice.

Clients wait for ``retry.backoff.ms`` before they do, which is 100 ms by default, and 80 where they vary it by a fifth.
"""

POLL_NS = 200_000_000
"""How long a poll of ours waits for more records: its row may be so much later than what it delivers."""

QUIET_NS = 5_000_000_000
"""For how long a process's polls must have returned nothing, until its last, before that shows a partition's end.

Jepsen's final readers go on for ten seconds."""


class PartitionEnd(NamedTuple):
    """How a partition that clients used ended, and how much of it the final read saw.

    Attributes:
        reached: one more than the highest offset that the final read delivered; 0 for none.
        node: the final leader: of the replicas that are leaders at the end, the one of the highest
            epoch; None when there is none, and then the bounds are None too.
        polled: one more than the highest offset that any poll delivered; 0 for none.
        exhausted: the process of the final read that came furthest went on, and was given nothing for
            :data:`QUIET_NS`.
        short: how far, at the least, a process of the final read had come that read on later than those that came to
            the end, and was given nothing before it came there; None: there is none.
        data_end: of a run with transactions one more than the highest offset below the high watermark at which the
            final leader's log holds something else than a marker, or than a record of which the next marker of its
            producer is an abort; None where its log is not known up to there.
    """

    run: str
    topic: str
    partition: int
    reached: int
    node: int | None = None
    leader_epoch: int | None = None
    high_watermark: int | None = None
    log_end_offset: int | None = None
    log_start_offset: int | None = None
    polled: int = 0
    exhausted: bool = False
    short: int | None = None
    data_end: int | None = None

    @property
    def complete(self) -> bool:
        """Whether the final read, if there was one, saw everything that the final leader had committed.

        A read_committed consumer is given no marker and no aborted record, so behind the last other record there is
        nothing to read.
        """
        if self.high_watermark is None:
            return False
        ends = (self.high_watermark, self.data_end)
        read = any(end is not None and self.reached >= end for end in ends)
        return read or self.high_watermark <= (self.log_start_offset or 0)


GAPS_KEPT = 20
"""How many gaps of one run's history reach the driver."""


class HistoryGap(NamedTuple):
    """Rows ``first`` to ``end`` (exclusive) are missing from the history; ``total`` is how many gaps the run has."""

    run: str
    first: int
    end: int
    total: int


class NodeLife(NamedTuple):
    """One incarnation of a node, as far as its timeline goes.

    Attributes:
        rows: how many rows it has, ``final`` ones apart; ``sequences``: how many sequences they have.
        expected: one more than the highest of these sequences; 0 for none.
        final_sequence: the lowest sequence of its ``final`` rows, which follow the others; None without any.
    """

    run: str
    node: int
    incarnation: int
    rows: int
    sequences: int
    expected: int
    final_sequence: int | None = None


class ReplicaEnd(NamedTuple):
    """A replica's end by its ``final`` row, None where that lacks it, and what its log holds.

    Attributes:
        records: how many rows the log has; ``offsets``: how many offsets they have.
        first: the lowest of these offsets, ``last`` the highest; None for none.
    """

    run: str
    node: int
    topic: str
    partition: int
    high_watermark: int | None
    log_end_offset: int | None
    log_start_offset: int | None
    records: int
    offsets: int
    first: int | None
    last: int | None


COUNTS = (
    "history_rows",
    "close_rows",
    "rows_after_close",
    "repeated_rows",
    "rows_back_in_time",
    "early_completions",
    "repeated_steps",
    "malformed_rows",
    "resent_values",
    "mismatched_ends",
    "mismatched_row",
    "sends",
    "sends_ok",
    "sends_fail",
    "acks_all",
    "acks_leader",
    "acks_none",
    "polls",
    "subscriptions",
    "partitions_given",
    "crashes",
    "programs",
    "outputs",
    "final_poll_rows",
    "polled_records",
    "final_records",
    "acked_all",
    "acked_nowhere",
    "acked_below_high_watermark",
    "acked_unaccounted",
)
"""What is counted per run.

``repeated_rows`` are rows beyond the first with the same index, ``rows_back_in_time`` those that are older than the row
of the index before, ``early_completions`` those of an operation without an invocation of a lower index.
``repeated_steps`` are rows beyond the first that begin, or end, one micro-operation of an operation that is a send, and
those that begin one that is a poll: what ends a poll is as many rows as it delivered records.
``resent_values`` are values that are sent to one partition by several operations, or steps of one.
``mismatched_ends`` are rows that end a send of which no invocation is about the same value and partition, though there
is one; ``mismatched_row`` is the lowest index of them, 0 where there are none.
``malformed_rows`` are sends and delivered records that lack a column that identifies them; no question uses them.

``programs`` are rows that ask how far a user's program is done with a partition, ``outputs`` the records that were
there in its output after its end.

``subscriptions`` are rows of clients that subscribe to a partition as members of a group, ``partitions_given`` those by
which a rebalance has given a member a partition.

``sends`` and ``polls`` are invocations; ``acks_all``, ``acks_leader`` and ``acks_none`` are rows of sends that begin or
end with acks -1, 1 and 0. ``final_poll_rows`` are the rows of completed polls of the final read, empty
ones included; ``polled_records`` excludes the final read. ``acked_all`` are ok sends with acks=all and a known offset,
``acked_nowhere`` those with acks=all or acks=1, in no transaction, that name no offset,
``acked_below_high_watermark`` those that the high watermark of a leader of that time is known to have passed, or that
are below one that clients were told, and ``acked_unaccounted`` those that no leader's of any time is known to have
passed and that no finding is about.
"""


@dataclass(frozen=True, slots=True)
class Answers:
    """Everything that an engine found out about some runs.

    Attributes:
        findings: the first of each group, with the totals of the group.
        deleted: of the findings with the excuse ``retention``, the last of each kind and partition between two
            consecutive log starts that any replica had, with the totals of those between them: by what the brokers
            recorded, they were deleted together.
        counts: by run, has every name of :data:`COUNTS`.
    """

    findings: Sequence[Finding]
    deleted: Sequence[Finding]
    ranges: Sequence[FindingRange]
    ends: Sequence[PartitionEnd]
    history_gaps: Sequence[HistoryGap]
    lives: Sequence[NodeLife]
    replicas: Sequence[ReplicaEnd]
    counts: Mapping[str, Mapping[str, int]]
    facts: Facts = field(default_factory=Facts)

    def of(self, run: str) -> Answers:
        """Those about one run."""
        return Answers(
            findings=[one for one in self.findings if one.run == run],
            deleted=[one for one in self.deleted if one.run == run],
            ranges=[one for one in self.ranges if one.run == run],
            ends=[one for one in self.ends if one.run == run],
            history_gaps=[one for one in self.history_gaps if one.run == run],
            lives=[one for one in self.lives if one.run == run],
            replicas=[one for one in self.replicas if one.run == run],
            counts={run: self.counts[run]},
            facts=self.facts.of(run),
        )


def of_group(finding: Finding, group: Sequence[Finding]) -> Finding:
    """``finding`` with the totals of its group."""
    times = [one.time_ns for one in group if one.time_ns is not None]
    begun = [one.since_ns for one in group if one.since_ns is not None]
    return finding._replace(
        total=len(group),
        earliest_ns=min(times, default=None),
        latest_ns=max(times, default=None),
        earliest_since_ns=min(begun, default=None),
        latest_since_ns=max(begun, default=None),
    )
