"""A share group is given every record until it is done with it (KIP-932).

* ``withheld-record``: a record was acknowledged to its producer with acks=all before the drain of a share group began,
  and the final read has it at its offset; but the group is not done with it, for none of its consumers accepted or
  rejected it in an operation that may have reached a broker, and it was not given to the group in the drain. So the
  group has never been given it, or not again after it was released, its consumer had left, or the lock had ended.

The drain accepts all that comes, until nothing has come for longer than a consumer may hold a record, and every
partition has delivered a record that was sent since the drain began. A record that is nowhere in the end is no matter
of this rule, nor is one of a transaction.

Severity: ``VIOLATION``. ``INDETERMINATE`` when the drain did not come to its end; and when the record may have been
archived because it was delivered as often as the group permits: each delivery that no consumer reports, since its
answer was lost, takes as long as a lock. Nothing else excuses it: a share coordinator that loses what it had stored
begins anew, and delivers more, not less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from checkers.lost_acknowledgement import TERMINAL, Began, first_polls
from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.recorded_load import recorded_load
from checkers.views.row import ALL, Row, where
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.poll_grounds import delivered
from checkers.wire_tap.send_grounds import acknowledged
from checkers.wire_tap.share_grounds import withheld
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    Needs,
    Sampled,
    Unseen,
)
from harness.checker import Attribution, Evidence
from harness.findings import Finding
from harness.history.run_directory import Manifest
from harness.model import TopicPartition

WITHHELD_RECORD = AnomalyKind(
    name="withheld-record",
    invariants=("C21",),
    meaning="A share group that was not done with an acknowledged record was never given it, or not again.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY, Needs.VALUES}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=replace(NOTHING, while_leading=False),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (WITHHELD_RECORD,)

Place = tuple[str, TopicPartition, int]
"""A group, a partition and an offset."""


class Drained(NamedTuple):
    """The last drain of a group in a partition: the row and the time of its beginning, whether it came to its end."""

    row: int
    ended_ns: int
    over: bool


class Acknowledged(NamedTuple):
    """An acknowledged record; ``acked``: the row that first says so, ``invoked_ns``: when its send began."""

    where: TopicPartition
    offset: int
    value: int
    acked: int
    invoked_ns: int


def find(history: History) -> Iterator[Finding]:
    """Reference: every record of one run that a share group lacks in the end."""
    drains = _drains(history)
    if not drains:
        return
    done, given, began = _done(history), _given(history), first_polls(history)
    there = sorted(_there(history), key=lambda one: (one.where, one.offset, one.value))
    for (group, place), drain in drains.items():
        for one in (one for one in there if one.where == place):
            key = (group, place, one.offset)
            last = given.get(key)
            drained = last is not None and last["index"] > drain.row
            if one.acked < drain.row and key not in done and not drained:
                yield _withheld(history, one, drain, last, began)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    end = "by the end of the drain" if finding.excuse is None else "by the end of the run, before all had come"
    before = "was never given it" if not finding.until else f"was not given it again after its delivery {finding.until}"
    was = f"Value {finding.value} was acknowledged at offset {finding.offset}"
    return f"{was}, and a share group that is not done with it {before} {end}."


def doubt(finding: Finding, manifest: Manifest) -> str:
    """Why its group may have been given it, unseen, as often as its limit permits; empty: it has not.

    A delivery that no consumer reports, because its answer was lost, ends with its lock, which takes as long as that.
    """
    if finding.since_ns is None or finding.time_ns is None:
        return ""
    load = recorded_load(manifest.configuration)
    limits = None if load is None else load.share_limits
    if limits is not None:
        unseen = (finding.time_ns - finding.since_ns) // round(limits.lock_s * 1e9)
        if (finding.until or 0) + unseen < limits.deliveries:
            return ""
    return "its group may have been given it, unseen, as often as its limit permits"


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the producer's acknowledgement, on what the final read delivered, and on what the group was given."""
    sent = acknowledged(frames, finding, finding.offset, finding.value)
    there = delivered(frames, finding, finding.offset, finding.value)
    return attributed(sent, there, withheld(frames, finding))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The send, that the record is there, and the last delivery, or the drain."""
    yield from witnesses.send(finding)
    yield from witnesses.reads(finding, finding.offset, finding.value)
    if finding.row is not None:
        did = "was given it last" if finding.until else "drained the group, and was not given it"
        yield Evidence("history", {"index": finding.row}, f"process {finding.process} {did}")


def _there(history: History) -> Iterator[Acknowledged]:
    """The acknowledged records that are there in the end."""
    begun: dict[tuple[TopicPartition, int], int] = {}
    acked: dict[tuple[TopicPartition, int, int], int] = {}
    transactional: set[tuple[TopicPartition, int]] = set()
    for row in (row for row in history.operations if row["f"] == "send"):
        own = (where(row), row["value"])
        begun[own] = min(row["time_ns"], begun.get(own, row["time_ns"]))
        if row["txn"]:
            transactional.add(own)
        if row["type"] == "ok" and row["acks"] == ALL and row["offset"] is not None:
            key = (*own, row["offset"])
            acked[key] = min(row["index"], acked.get(key, row["index"]))
    for (place, value, offset), index in acked.items():
        if (place, value) not in transactional and history.in_final_read(place, offset, value):
            yield Acknowledged(place, offset, value, index, begun[place, value])


def _drains(history: History) -> dict[tuple[str, TopicPartition], Drained]:
    """By group and partition, its last drain."""
    begun: dict[tuple[int, TopicPartition], Row] = {}
    ended: dict[tuple[int, TopicPartition], Row] = {}
    for row in sorted(history.operations, key=lambda one: int(one["index"])):
        if row["f"] == "drain" and None not in (row["topic"], row["group"]):
            key = (row["op"], where(row))
            if row["type"] == "invoke":
                begun.setdefault(key, row)
            else:
                ended[key] = row
    found: dict[tuple[str, TopicPartition], Drained] = {}
    for key, first in begun.items():
        end, own = ended.get(key, first), (first["group"], key[1])
        one = Drained(first["index"], end["time_ns"], end["type"] == "ok")
        found[own] = max(found.get(own, one), one)
    return found


def _done(history: History) -> set[Place]:
    """What groups are done with, or may be."""
    failed = {
        (row["op"], row["group"], where(row), row["offset"])
        for row in history.operations
        if row["f"] == "acknowledge" and row["type"] == "fail" and None not in (row["topic"], row["group"])
    }
    return {
        (row["group"], where(row), row["offset"])
        for row in history.operations
        if row["f"] == "acknowledge" and None not in (row["topic"], row["group"])
        and row["acknowledgement"] in TERMINAL
        and (row["op"], row["group"], where(row), row["offset"]) not in failed
    }  # fmt: skip


def _given(history: History) -> dict[Place, Row]:
    """The last delivery of each record."""
    found: dict[Place, Row] = {}
    for row in history.operations:
        if row["f"] == "acquire" and row["type"] == "ok" and None not in (row["topic"], row["group"]):
            key = (row["group"], where(row), row["offset"])
            found[key] = max(found.get(key, row), row, key=lambda one: int(one["index"]))
    return found


def _withheld(
    history: History, one: Acknowledged, drain: Drained, last: Row | None, began: Mapping[int, Began]
) -> Finding:  # fmt: skip
    since_ns = one.invoked_ns
    if last is not None:
        since_ns = began.get(last["process"], Began(last["index"], last["time_ns"])).time_ns
    return Finding(
        history.run, "withheld-record", *one.where,
        offset=one.offset,
        value=one.value,
        excuse=None if drain.over else "unfinished",
        row=drain.row if last is None else last["index"],
        time_ns=drain.ended_ns,
        process=None if last is None else last["process"],
        until=0 if last is None else last["delivery_count"] or 1,
        since_ns=since_ns,
    )  # fmt: skip
