"""A record that is sent after another one was acknowledged comes after it.

* ``int-nonmonotonic-send``: two sends of one operation to a partition, and the later one has the lower offset.
* ``nonmonotonic-send``: a process sends a record after another one was acknowledged to it in the same partition, and it
  is stored at a lower offset.
* ``G0-realtime``: the same between two processes, where the process itself was told nothing to the contrary.

Where a record is, its acknowledgement says; where that does not, or nobody knows how its send ended, what delivers it
and the final leader's log do, if they name one offset alone. An acknowledgement of acks=0 without an offset comes
before the record is stored, so that nothing comes after it.

Sends that overlap may be appended in any order, and other records may come between those of one operation.

Severity: ``VIOLATION``. ``WEAK`` when either sender waited for less than all in-sync replicas: the record may have been
given up, and its offset free again. ``DOCUMENTED`` when an unclean election after the earlier acknowledgement made
somebody lead whose log ended no later than where the later record is, and the configuration permits such elections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from checkers.offsets_agree import places
from checkers.rows import ALL, Row, RunRows, Send, where
from checkers.witnesses import Witnesses
from harness.checker import Evidence
from harness.model import TopicPartition
from spark_analysis.answer import Excuse, Finding

KINDS = ("int-nonmonotonic-send", "nonmonotonic-send", "G0-realtime")


class Told(NamedTuple):
    """Where a process's record is.

    ``invoked_row``: where it was sent; ``acked``: row ``row`` says that it is stored.
    """

    where: TopicPartition
    op: int
    mop: int
    row: int
    time_ns: int
    process: int
    offset: int
    value: int
    acks: int
    invoked_row: int
    acked: bool


def find(rows: RunRows) -> Iterator[Finding]:
    """The reference: every send of one run that was appended before one that it was sent after."""
    where_is = {key: min(offsets) for key, offsets in places(rows).items() if len(offsets) == 1}
    ended = [row for row in rows.operations if row["f"] == "send" and row["type"] != "invoke" and row["txn"]]
    known = sorted(_told(ended, where_is), key=lambda t: (t.where, t.op, t.mop, t.row))
    for _, group in groupby(known, key=lambda t: (t.where, t.op)):
        for before, after in pairwise(group):
            if after.mop > before.mop and after.offset < before.offset:
                yield _disorder(rows, "int-nonmonotonic-send", before, after)
    stored = sorted(_stored(rows.sends, where_is), key=lambda t: t.where)
    for _, same in groupby(stored, key=lambda t: t.where):
        yield from _late(rows, list(same))


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    before = f"value {finding.other_value} at offset {finding.other_offset}"
    if finding.kind == "int-nonmonotonic-send":
        what = f"value {finding.value} to offset {finding.offset}"
        return f"Process {finding.process} sent {what} after {before}, in one operation."
    stored = f"Value {finding.value} is at offset {finding.offset}"
    return f"{stored}, and was sent after the acknowledgement of {before}."


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The two acknowledgements, and what the replicas hold."""
    yield from witnesses.send(finding._replace(value=finding.other_value))
    yield from witnesses.send(finding)
    yield from witnesses.holders(finding)


def _told(ended: Iterable[Row], where_is: Mapping[tuple[TopicPartition, int], int]) -> Iterator[Told]:
    for row in ended:
        offset = row["offset"]
        if offset is None and row["type"] != "fail":
            offset = where_is.get((where(row), row["value"]))
        if offset is not None:
            yield Told(
                where(row), row["op"], row["mop"], row["index"], row["time_ns"], row["process"], offset, row["value"],
                row["acks"], row["index"], acked=True,
            )  # fmt: skip


def _stored(sends: Iterable[Send], where_is: Mapping[tuple[TopicPartition, int], int]) -> Iterator[Told]:
    for send in sends:
        offset = send.offset
        if offset is None and send.type != "fail":
            offset = where_is.get((send.where, send.value))
        if offset is not None:
            acked = send.type == "ok" and (send.offset is not None or send.acks != 0)
            yield Told(
                send.where, send.op, 0, send.row, send.completed_ns, send.process, offset, send.value, send.acks,
                send.invoked_row, acked,
            )  # fmt: skip


def _late(rows: RunRows, stored: Sequence[Told]) -> Iterator[Finding]:
    """Of every send of a partition the first acknowledgement of a higher offset, when that came before it began."""
    anybody: list[Told] = []
    own: dict[int, Told] = {}
    by_offset = sorted(stored, key=lambda t: (-t.offset, t.row))
    for _, same in groupby(by_offset, key=lambda t: t.offset):
        here = list(same)
        for after in here:
            mine = own.get(after.process, after)
            if mine.row < after.invoked_row:
                yield _disorder(rows, "nonmonotonic-send", mine, after)
            elif anybody and anybody[0].row < after.invoked_row:
                yield _disorder(rows, "G0-realtime", anybody[0], after)
        for one in (told for told in here if told.acked):
            anybody = [min(*anybody, one, key=lambda t: t.row)] if anybody else [one]
            own[one.process] = min(own.get(one.process, one), one, key=lambda t: t.row)


def _disorder(rows: RunRows, kind: str, before: Told, after: Told) -> Finding:
    return Finding(
        rows.run, kind, *after.where,
        offset=after.offset,
        value=after.value,
        excuse=_excuse(rows, before, after),
        row=after.row,
        time_ns=after.time_ns,
        process=after.process,
        acks=after.acks,
        other_offset=before.offset,
        other_value=before.value,
    )  # fmt: skip


def _excuse(rows: RunRows, before: Told, after: Told) -> Excuse | None:
    if {before.acks, after.acks} != {ALL}:
        return "acks"
    return "unclean" if rows.cut_off(after.where, after.offset, before.time_ns) else None
