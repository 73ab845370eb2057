"""A transaction happens as a whole, and nobody sees it before it is committed, not even itself.

* ``precommitted-read``: an operation is given a record that it sends itself.
* ``torn-transaction``: one record of a transaction of which nobody knows how it ended was delivered, so it was
  committed, and another one is in no final read that came to the end of its partition, or to the offset where its
  client was told that it is. (Of a transaction that ended ``ok`` that is a ``lost-write``; a record of one that failed
  is an ``aborted-read``.)

Consumers that read uncommitted records are not promised any of this.

Severity: ``VIOLATION``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from checkers.rows import RunRows, Send, where
from checkers.witnesses import Witnesses
from harness.checker import Evidence
from harness.model import TopicPartition
from spark_analysis.answer import Finding

KINDS = ("precommitted-read", "torn-transaction")


def find(rows: RunRows) -> Iterator[Finding]:
    """The reference: everything of one run's transactions that was seen too early, or not whole."""
    yield from _precommitted(rows)
    yield from _torn(rows)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    if finding.kind == "precommitted-read":
        what = f"value {finding.value} at offset {finding.offset}"
        return f"Process {finding.process} was delivered {what} by the operation that sends it."
    return (
        f"Value {finding.value} is in no final read, although value {finding.other_value} of the same transaction was "
        "delivered to consumers that read only what is committed."
    )


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The send, the delivery, and what the replicas hold."""
    yield from witnesses.send(finding)
    if finding.kind == "precommitted-read":
        yield from witnesses.read_by(finding, finding.offset, finding.row)
    yield from witnesses.holders(finding)


def _precommitted(rows: RunRows) -> Iterator[Finding]:
    own = {(row["op"], where(row), row["value"]) for row in rows.operations if row["f"] == "send" and row["txn"]}
    for read in rows.reads:
        key = (read.op, read.where, read.value or 0)
        if key in own and read.value is not None and read.read_committed:
            own.remove(key)
            yield Finding(
                rows.run, "precommitted-read", *read.where,
                offset=read.offset,
                value=read.value,
                leader_epoch=read.leader_epoch,
                row=read.row,
                time_ns=read.time_ns,
                process=read.process,
            )  # fmt: skip


def _torn(rows: RunRows) -> Iterator[Finding]:
    first: dict[tuple[TopicPartition, int | None], int] = {}
    for read in rows.reads:
        if read.read_committed:
            first.setdefault((read.where, read.value), read.row)
    told: dict[tuple[TopicPartition, int], int] = {}
    for row in rows.operations:
        if (row["f"], row["type"]) == ("send", "info") and row["offset"] is not None:
            key = (where(row), row["value"])
            told[key] = min(row["offset"], told.get(key, row["offset"]))
    transactions: dict[int, list[Send]] = defaultdict(list)
    for send in rows.sends:
        if send.txn and send.type == "info":
            transactions[send.op].append(send)
    for sends in transactions.values():
        seen = [(first[s.where, s.value], s.value) for s in sends if (s.where, s.value) in first]
        for send in sends:
            unread = (send.where, send.value) not in rows.read_values
            offset = told.get((send.where, send.value))
            gone = rows.missing(send.where, None, read=True) or rows.missing(send.where, offset, read=False)
            if seen and unread and gone:
                yield Finding(
                    rows.run, "torn-transaction", *send.where,
                    offset=offset,
                    value=send.value,
                    row=send.row,
                    time_ns=send.completed_ns,
                    process=send.process,
                    other_value=min(seen)[1],
                )  # fmt: skip
