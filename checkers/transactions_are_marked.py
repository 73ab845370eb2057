"""Every transaction is closed on every partition that it wrote to, and as it ended (R12).

In the final leader's log the records of a transaction are closed by the next marker of their producer. A transaction is
known to be committed when its client was told so, when a consumer that reads only what is committed was delivered one
of its records, or when any of its records is closed by a commit marker; and to have failed when its client proved it.

* ``wrong-marker``: records of a transaction that is known to be committed are closed by an abort marker, so that
  consumers are not given them; or records of one that failed are closed by a commit marker.
* ``open-transaction``: records of a transaction are closed by no marker. Consumers that read only what is committed
  are given nothing from the first of them on: the last stable offset stays there.

One anomaly per transaction and partition: the first such record. Only records whose producer the log names are judged.
A marker that closes nothing is none: coordinators send markers to partitions that were announced and not written to,
and send them again after a failover.

Severity: ``VIOLATION``. An ``open-transaction`` is ``INDETERMINATE`` in runs that do not promise to settle, for markers
are written when somebody comes to it; and ``DOCUMENTED`` when an unclean election began a later epoch than the record's
and the configuration permits such elections: it may have given the marker up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from checkers.rows import Row, RunRows, Send
from checkers.witnesses import Witnesses
from harness.checker import Evidence
from harness.model import TopicPartition
from spark_analysis.answer import Finding

KINDS = ("wrong-marker", "open-transaction")


class Written(NamedTuple):
    """A record of a transaction in the final leader's log; ``closed``: by which marker."""

    send: Send
    offset: int
    leader_epoch: int
    closed: str | None


def find(rows: RunRows) -> Iterator[Finding]:
    """The reference: every transaction of one run that is closed wrongly, or not at all."""
    transactions: dict[int, list[Written]] = defaultdict(list)
    for place, sends in _by_place(rows).items():
        for one in _written(rows, place, sends):
            transactions[one.send.op].append(one)
    committed = {s.op for s in rows.sends if s.txn and not rows.is_uncommitted(s)}
    for op, written in transactions.items():
        ended = _ended(written, known=op in committed)
        for place in sorted({one.send.where for one in written}):
            ours = sorted(
                (w for w in written if w.send.where == place), key=lambda w: (w.offset, w.send.value, w.leader_epoch)
            )
            wrong = next((w for w in ours if w.closed is not None and ended not in (None, w.closed)), None)
            if wrong is not None:
                yield _finding(rows, "wrong-marker", wrong)
            unclosed = next((w for w in ours if w.closed is None), None)
            if unclosed is not None:
                yield _finding(rows, "open-transaction", unclosed)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    record = f"Value {finding.value} at offset {finding.offset} belongs to a transaction"
    if finding.kind == "open-transaction":
        return f"{record} that no marker closes in the final leader's log."
    ended, closed = ("is known to be committed", "an abort") if finding.committed else ("failed", "a commit")
    return f"{record} that {ended}, and {closed} marker closes it in the final leader's log."


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The send, who was given the record, and what the replicas hold."""
    yield from witnesses.send(finding)
    yield from witnesses.reads(finding, finding.offset, finding.value)
    yield from witnesses.holders(finding)


def _by_place(rows: RunRows) -> dict[TopicPartition, dict[int, Send]]:
    found: dict[TopicPartition, dict[int, Send]] = defaultdict(dict)
    for (place, value), send in rows.transactional.items():
        found[place][value] = send
    return found


def _written(rows: RunRows, place: TopicPartition, sends: dict[int, Send]) -> Iterator[Written]:
    end = rows.ends[place]
    log = [r for at in rows.logged.get(place, {}).values() for r in at if r["node"] == end.node]
    producers: dict[int, list[Row]] = defaultdict(list)
    for row in log:
        if row.get("producer_id") is not None:
            producers[row["producer_id"]].append(row)
    for ours in producers.values():
        markers = sorted((row["offset"], row["control"]) for row in ours if row.get("control") is not None)
        for row in ours:
            if row.get("control") is None and row["value"] in sends:
                at = bisect_right(markers, row["offset"], key=lambda marker: marker[0])
                closed = markers[at][1] if at < len(markers) else None
                yield Written(sends[row["value"]], row["offset"], row["leader_epoch"], closed)


def _ended(written: Sequence[Written], *, known: bool) -> Literal["commit", "abort"] | None:
    if any(one.send.type == "fail" for one in written):
        return "abort"
    return "commit" if known or any(one.closed == "commit" for one in written) else None


def _finding(rows: RunRows, kind: str, one: Written) -> Finding:
    later = any(epoch > one.leader_epoch for _, epoch in rows.unclean.get(one.send.where, []))
    return Finding(
        rows.run, kind, *one.send.where,
        offset=one.offset,
        value=one.send.value,
        leader_epoch=one.leader_epoch,
        excuse="unclean" if kind == "open-transaction" and later else None,
        row=one.send.last.row,
        time_ns=one.send.last.time_ns,
        process=one.send.last.process,
        committed=None if kind == "open-transaction" else one.closed == "abort",
    )  # fmt: skip
