"""A user's program processes every record of its input as the scenario promises: not left out, not twice, in order.

The harness fills the input, whose records the final read shows, and reads the output: a topic, or what the program has
printed, written or posted. A record of the output *holds* a record of the input when it has the identity of that.

* ``unprocessed``: the program has said that it is done with a record, and no record of the output, at any time, holds
  it. It says so by the commit of its group, read after its end; a program without one is taken to be done with
  everything once its output has been quiet while it ran, where the scenario says that this is enough. The record must
  be in the input in the end: what the cluster has lost, and what it never stored, is not the program's to process.
* ``processed-twice``: two records of the output, there after the program's end, hold the same record of the input,
  which the input does not hold twice.
* ``processed-out-of-order``: of two records with one key, the one that is later in its partition was put out first. Two
  records of the output are compared where they are in one partition of it, or come from one life of a program, and
  only when the earlier record is nowhere else in the output: a program that starts over from its last commit puts out
  again what it has put out before, and only what it puts out for the first time counts.
* ``made-up-output``: a record of the output holds no record that was sent to the input.

A record is of the key that its value gives, see :func:`harness.identity.key_of`.

Severity: ``VIOLATION``; ``DOCUMENTED`` where the scenario does not promise otherwise (``guarantees.program_may_skip``,
``program_may_repeat``, ``program_may_reorder``). An ``unprocessed`` record that the program has not said it is done
with is ``INDETERMINATE``: it had no time, or no cluster, to finish. What an unclean election gave up, in any partition
of the run, may have been a record of the output, or a commit, and the program may have been given another record in its
place: where the configuration permits such elections, the first three are ``DOCUMENTED``. They are, too, when every
replica failed lossily at one time since the record was sent (see :mod:`checkers.views.lossy_failures`). A fault that
puts records of another cluster into a log excuses a ``made-up-output``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.row import Row, where
from checkers.views.run_demands import RunDamage
from checkers.views.timeline import Timeline
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import Ground, attributed
from checkers.wire_tap.commit_grounds import returned, row_of
from checkers.wire_tap.program_grounds import UNKNOWN_OUTPUT, given_again, made_up_commit, withheld_from_program
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    LossyFailure,
    Needs,
    Sampled,
    Unseen,
)
from harness.checker import Attribution, Evidence
from harness.excuse import Excuse
from harness.findings import Finding
from harness.identity import KEYS
from harness.model import TopicPartition

_OF_CLUSTERS = replace(NOTHING, unclean_election=True, lossy_failure=LossyFailure.AFTER_KNOWN)
_SAMPLED = Sampled(found=Found.ALL, unseen=Unseen.NOTHING)

UNPROCESSED = AnomalyKind(
    name="unprocessed",
    invariants=("C17",),
    meaning="A user's program has said that it is done with a record of its input, and its output never held it.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY, Needs.VALUES}),
    follows_from=("lost-commit", "commit-beyond-end"),
    cause_at=CauseAt.OFFSET,
    excuses=_OF_CLUSTERS,
    since=None,
    sampled=_SAMPLED,
    in_scenarios=NO_WORD,
    permitted_by="program_may_skip",
)
PROCESSED_TWICE = AnomalyKind(
    name="processed-twice",
    invariants=("C17",),
    meaning="The output of a user's program holds one record of its input twice.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY, Needs.VALUES}),
    follows_from=("duplicate",),
    cause_at=CauseAt.SAME_RECORD,
    excuses=replace(_OF_CLUSTERS, own_topic="offsets.topic.replication.factor"),
    since=None,
    sampled=_SAMPLED,
    in_scenarios=NO_WORD,
    permitted_by="program_may_repeat",
)
PROCESSED_OUT_OF_ORDER = AnomalyKind(
    name="processed-out-of-order",
    invariants=("C18",),
    meaning="A user's program put out a record behind a later one of the same key.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY, Needs.VALUES}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=_OF_CLUSTERS,
    since=None,
    sampled=_SAMPLED,
    in_scenarios=NO_WORD,
    permitted_by="program_may_reorder",
)
MADE_UP_OUTPUT = AnomalyKind(
    name="made-up-output",
    invariants=("C17",),
    meaning="The output of a user's program has a record that holds none of its input.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=_SAMPLED,
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (UNPROCESSED, PROCESSED_TWICE, PROCESSED_OUT_OF_ORDER, MADE_UP_OUTPUT)


class Put(NamedTuple):
    """A record of the output; its ``lane`` is a partition, or the process that stands for one life of a program."""

    lane: tuple[str, int]
    at: int
    value: int | None
    final: bool
    row: int
    time_ns: int
    process: int


class Given(NamedTuple):
    """A record of the input; ``at``: its offsets in the end, in order."""

    where: TopicPartition
    value: int
    at: Sequence[int]
    since_ns: int
    time_ns: int


Input = Mapping[int, Sequence[Given]]
"""The records of the input by value; there is one of each unless the history is none."""


def find(history: History, timeline: Timeline, damage: RunDamage) -> Iterator[Finding]:
    """Reference: what is wrong with the output of one run's program."""
    asked = [row for row in history.operations if row["f"] == "reached" and row["topic"] is not None]
    puts = [_put(row) for row in history.operations if (row["f"], row["type"]) == ("output", "ok")]
    final = sorted((put for put in puts if put.final), key=lambda put: put.row)
    given: dict[int, list[Given]] = defaultdict(list)
    for one in _given(history, asked):
        given[one.value].append(one)
    excuse: Excuse | None = "unclean" if timeline.unclean else None
    found = [
        *_left_out(given, {put.value for put in puts}, asked, excuse),
        *_twice(given, final, excuse),
        *_out_of_order(given, final, excuse),
        *_made_up({send.value for send in history.sends}, final, "damage" if damage.swapped else None),
    ]
    yield from (one._replace(run=history.run) for one in found)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    if finding.kind == "unprocessed":
        done = "has not said that it is done with it" if finding.excuse == "unfinished" else "says it is done with it"
        return f"The program {done}, and no record of its output holds value {finding.value}."
    if finding.kind == "processed-twice":
        return f"Two records of the program's output hold value {finding.value}."
    if finding.kind == "processed-out-of-order":
        return (
            f"The program put out value {finding.value} behind value {finding.other_value} of the same key, which is "
            f"behind it in the input, at offset {finding.other_offset}."
        )
    held = "no record of its input" if finding.value is None else f"value {finding.value}, which was never sent"
    return f"Record {finding.other_offset} of the program's output, as process {finding.process} read it, holds {held}."


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on what the program was sent and, of a record left out, on the commit that says that it is done."""
    if finding.kind == PROCESSED_TWICE.name:
        return attributed(given_again(frames, finding))
    if finding.kind != UNPROCESSED.name:
        return attributed(UNKNOWN_OUTPUT)
    row = row_of(frames, finding)
    if row is None:
        return attributed(Ground(None, "the program has not said that it is done with it"))
    if row["group"] is None:
        return attributed(withheld_from_program(frames, finding))
    made_up = made_up_commit(frames, finding, row["group"])
    return attributed(returned(frames, finding), made_up or withheld_from_program(frames, finding))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The send of the record, how the final read was given it, and the row of the output, or of what is done."""
    if finding.kind != "made-up-output":
        yield from witnesses.send(finding)
        yield from witnesses.reads(finding, finding.offset, finding.value)
    if finding.row is not None:
        did = "up to where the program is done" if finding.kind == "unprocessed" else "a record of the program's output"
        yield Evidence("history", {"index": finding.row}, f"process {finding.process} read {did}")


def _put(row: Row) -> Put:
    lane = ("", row["process"]) if row["topic"] is None else where(row)
    return Put(lane, row["offset"] or 0, row["value"], row["final"], row["index"], row["time_ns"], row["process"])


def _given(history: History, asked: Sequence[Row]) -> Iterator[Given]:
    """The records of the input that were sent before the program was asked how far it had come."""
    begun: dict[TopicPartition, int] = {}
    for row in asked:
        if row["type"] == "invoke":
            begun[where(row)] = min(row["index"], begun.get(where(row), row["index"]))
    sent: dict[tuple[TopicPartition, int], list[Row]] = defaultdict(list)
    for row in history.operations:
        if row["f"] == "send" and where(row) in begun:
            sent[where(row), row["value"]].append(row)
    found: dict[tuple[TopicPartition, int | None], set[int]] = defaultdict(set)
    for read in history.reads:
        if read.final:
            found[read.where, read.value].add(read.offset)
    for (place, value), own in sent.items():
        if min(row["index"] for row in own) < begun[place]:
            times = [row["time_ns"] for row in own]
            acked = [row["time_ns"] for row in own if row["type"] == "ok"]
            yield Given(place, value, sorted(found[place, value]), min(times), min(acked, default=max(times)))


def _left_out(given: Input, put: set[int | None], asked: Sequence[Row], excuse: Excuse | None) -> Iterator[Finding]:
    answers = {where(row): row for row in sorted(asked, key=lambda row: int(row["index"])) if row["type"] == "ok"}
    for one in _each(given):
        if one.at and one.value not in put:
            row = answers.get(one.where)
            if row is None or one.at[0] >= (row["offset"] or 0):
                yield _about("unprocessed", one, "unfinished")
            else:
                yield _about("unprocessed", one, excuse)._replace(row=row["index"], process=row["process"])


def _twice(given: Input, final: Sequence[Put], excuse: Excuse | None) -> Iterator[Finding]:
    places: dict[int | None, dict[tuple[tuple[str, int], int], Put]] = defaultdict(dict)
    for put in final:
        places[put.value].setdefault((put.lane, put.at), put)
    for one in _each(given):
        second = list(places[one.value].values())[1:2]
        if second and len(one.at) < 2:
            yield _about("processed-twice", one, excuse)._replace(row=second[0].row, process=second[0].process)


def _out_of_order(given: Input, final: Sequence[Put], excuse: Excuse | None) -> Iterator[Finding]:
    lanes: dict[tuple[object, ...], dict[int, tuple[Given, Put]]] = defaultdict(dict)
    seen_in: dict[int | None, set[tuple[str, int]]] = defaultdict(set)
    for put in sorted(final, key=lambda put: (put.at, put.row)):
        seen_in[put.value].add(put.lane)
        for one in given.get(put.value, ()) if put.value is not None else ():
            if len(one.at) == 1:
                lanes[put.lane, one.where, one.value % KEYS].setdefault(one.value, (one, put))
    for puts in lanes.values():
        furthest: tuple[int, int] | None = None
        for one, put in puts.values():
            if furthest is not None and one.at[0] < furthest[0] and len(seen_in[one.value]) == 1:
                yield _about("processed-out-of-order", one, excuse)._replace(
                    row=put.row, process=put.process, other_offset=furthest[0], other_value=furthest[1]
                )
            furthest = max(furthest or (-1, -1), (one.at[0], one.value))


def _made_up(sent: set[int], final: Sequence[Put], excuse: Excuse | None) -> Iterator[Finding]:
    for put in final:
        if put.value not in sent:
            place = put.lane if put.lane[0] else ("", -1)
            yield Finding(
                "", "made-up-output", *place,
                offset=put.at if put.lane[0] else None,
                value=put.value,
                excuse=excuse,
                row=put.row,
                time_ns=put.time_ns,
                process=put.process,
                other_offset=put.at,
            )  # fmt: skip


def _each(given: Input) -> Iterator[Given]:
    return (one for several in given.values() for one in several)


def _about(kind: str, one: Given, excuse: Excuse | None) -> Finding:
    """A finding about a record of the input; of no run yet."""
    return Finding(
        "", kind, *one.where,
        offset=min(one.at, default=None),
        value=one.value,
        excuse=excuse,
        time_ns=one.time_ns,
        since_ns=one.since_ns,
    )  # fmt: skip
