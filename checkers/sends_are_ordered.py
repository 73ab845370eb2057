"""A record that is sent after another one was acknowledged comes after it.

* ``int-nonmonotonic-send``: two sends of one operation to a partition, and the later one has the lower offset.
* ``nonmonotonic-send``: a process sends a record after it was told the offset of another one in the same partition, and
  is acknowledged a lower offset.
* ``G0-realtime``: the same between two processes, where the process itself was told nothing to the contrary.

Sends that overlap may be appended in any order, and other records may come between those of one operation.

Severity: ``VIOLATION``. ``WEAK`` when either sender waited for less than all in-sync replicas: the record may have been
given up, and its offset free again. ``DOCUMENTED`` when an unclean election after the earlier acknowledgement made
somebody lead whose log ended no later than where the later record is, and the configuration permits such elections.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from checkers.rows import ALL, RunRows, Send
from checkers.witnesses import Witnesses
from harness.checker import Evidence
from spark_analysis.answer import Excuse, Finding

KINDS = ("int-nonmonotonic-send", "nonmonotonic-send", "G0-realtime")


def find(rows: RunRows) -> Iterator[Finding]:
    """The reference: every send of one run that was appended before one that it was sent after."""
    told = sorted((s for s in rows.sends if s.offset is not None), key=lambda s: (s.where, s.op, s.mop))
    for _, group in groupby(told, key=lambda s: (s.where, s.op)):
        for before, after in pairwise(group):
            if after.txn and (after.offset or 0) < (before.offset or 0):
                yield _disorder(rows, "int-nonmonotonic-send", before, after)
    acked = [s for s in told if s.type == "ok"]
    for _, same in groupby(acked, key=lambda s: s.where):
        yield from _late(rows, list(same))


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    before = f"value {finding.other_value} at offset {finding.other_offset}"
    if finding.kind == "int-nonmonotonic-send":
        what = f"value {finding.value} to offset {finding.offset}"
        return f"Process {finding.process} sent {what} after {before}, in one operation."
    told = f"Value {finding.value} was acknowledged at offset {finding.offset}"
    return f"{told}, and was sent after the acknowledgement of {before}."


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The two acknowledgements, and what the replicas hold."""
    yield from witnesses.send(finding._replace(value=finding.other_value))
    yield from witnesses.send(finding)
    yield from witnesses.holders(finding)


def _late(rows: RunRows, acked: Sequence[Send]) -> Iterator[Finding]:
    """Of every send of a partition the first acknowledgement of a higher offset, when that came before it began."""
    anybody: list[Send] = []
    own: dict[int, Send] = {}
    by_offset = sorted(acked, key=lambda s: (-(s.offset or 0), s.row))
    for _, same in groupby(by_offset, key=lambda s: s.offset):
        here = list(same)
        for after in here:
            mine = own.get(after.process, after)
            if mine.row < after.invoked_row:
                yield _disorder(rows, "nonmonotonic-send", mine, after)
            elif anybody and anybody[0].row < after.invoked_row:
                yield _disorder(rows, "G0-realtime", anybody[0], after)
        for send in here:
            anybody = [min(*anybody, send, key=lambda s: s.row)] if anybody else [send]
            own[send.process] = min(own.get(send.process, send), send, key=lambda s: s.row)


def _disorder(rows: RunRows, kind: str, before: Send, after: Send) -> Finding:
    return Finding(
        rows.run, kind, *after.where,
        offset=after.offset,
        value=after.value,
        excuse=_excuse(rows, before, after),
        row=after.row,
        time_ns=after.completed_ns,
        process=after.process,
        acks=after.acks,
        other_offset=before.offset,
        other_value=before.value,
    )  # fmt: skip


def _excuse(rows: RunRows, before: Send, after: Send) -> Excuse | None:
    if {before.acks, after.acks} != {ALL}:
        return "acks"
    return "unclean" if rows.cut_off(after.where, after.offset or 0, before.completed_ns) else None
