"""Which marker closes a transaction's record in the final leader's log, and whether another one closed it before.

An unclean election may leave a record in the log and give up its marker. Then the producer's next marker closes the
record, whatever became of its own transaction: a committed record is closed by the abort of the next transaction, or an
aborted one by its commit. So a marker takes the place of another one when it is of a later leader epoch than the
record, and an unclean election that began an epoch in between gave up something that a leader had written behind the
record (see :mod:`checkers.views.unclean_elections`). A sampled timeline does not show what was written there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import Row
from checkers.views.terms import Term
from checkers.views.timeline import Timeline
from checkers.views.unclean_elections import UncleanElection
from harness.model import TopicPartition


class TransactionEnd(NamedTuple):
    """The marker that closes a transaction's record.

    Attributes:
        closed: its kind; None: no marker does. ``closed_at``: its offset; None with it.
        instead_ns: since when it may have taken the place of another marker: the first such unclean election; None: it
            has not.
    """

    value: int
    offset: int
    leader_epoch: int
    closed: str | None
    closed_at: int | None
    instead_ns: int | None


def transaction_ends(
    history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds, place: TopicPartition
) -> Iterator[TransactionEnd]:
    """Every record of a transaction in the final leader's log that has a producer id there."""
    leader = ends.by_partition[place].node
    producers: dict[int, list[Row]] = defaultdict(list)
    for row in (r for at in logs.logged.get(place, {}).values() for r in at if r["node"] == leader):
        if row.get("producer_id") is not None:
            producers[row["producer_id"]].append(row)
    for group in producers.values():
        marked = (row for row in group if row.get("control") is not None)
        markers = sorted((row["offset"], row["control"], row["leader_epoch"]) for row in marked)
        for row in group:
            if row.get("control") is None and (place, row["value"]) in history.transactional:
                at = bisect_right(markers, row["offset"], key=lambda marker: marker[0])
                end, closed, epoch = markers[at] if at < len(markers) else (None, None, None)
                since = None if epoch is None else _instead_ns(timeline, place, row, epoch)
                yield TransactionEnd(row["value"], row["offset"], row["leader_epoch"], closed, end, since)


def replaced(
    history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds, control: str
) -> dict[tuple[TopicPartition, int, int], int]:
    """The records that such a marker closes in the place of another: by partition, offset and value, since when."""
    found: dict[tuple[TopicPartition, int, int], int] = {}
    for place in {place for place, _ in history.transactional}:
        for one in transaction_ends(history, timeline, logs, ends, place):
            if one.closed == control and one.instead_ns is not None:
                key = (place, one.offset, one.value)
                found[key] = min(one.instead_ns, found.get(key, one.instead_ns))
    return found


def proofs(
    history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds
) -> dict[tuple[TopicPartition, int | None], int]:
    """The records whose delivery proves that their transaction was committed: by partition and value, the first row.

    A read_committed consumer's delivery does, unless it came when a commit marker had taken another one's place.
    """
    since: dict[tuple[TopicPartition, int | None], int] = {}
    for (place, _, value), since_ns in replaced(history, timeline, logs, ends, "commit").items():
        since[place, value] = min(since_ns, since.get((place, value), since_ns))
    first: dict[tuple[TopicPartition, int | None], int] = {}
    early: dict[tuple[TopicPartition, int | None], int] = {}
    for read in (r for r in history.reads if r.read_committed):
        key = (read.where, read.value)
        first.setdefault(key, read.row)
        early[key] = min(read.time_ns, early.get(key, read.time_ns))
    return {key: row for key, row in first.items() if key not in since or early[key] < since[key]}


def _instead_ns(timeline: Timeline, place: TopicPartition, record: Row, leader_epoch: int) -> int | None:
    """Since when a marker of ``leader_epoch`` may have taken the place of another one; None: it has not."""
    between = range(record["leader_epoch"] + 1, leader_epoch + 1)
    known = [election for election in timeline.unclean_elections.get(place, []) if election.leader_epoch in between]
    if not known:
        return None
    terms = [term for term in timeline.leader_terms(place) if term.leader_epoch >= record["leader_epoch"]]
    times = (
        election.time_ns
        for election in known
        if timeline.sampled or any(gave_up_some(election, term, record["offset"] + 1) for term in terms)
    )
    return min(times, default=None)


def gave_up_some(election: UncleanElection, term: Term, begin: int = 0) -> bool:
    """Whether an unclean election gave up anything that a leader wrote in that term from an offset on."""
    first, last = max(begin, term.first_log_end), term.log_end - 1
    return first <= last and any(election.gave_up(term.leader_epoch, offset) for offset in (first, last))
