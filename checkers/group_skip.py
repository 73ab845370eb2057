"""A group leaves no record out: what lies below an offset that one of its members committed, a member was given.

* ``group-skip``: the group was given a record of a partition, and committed beyond it, but no member at any time was
  given anything at an offset before that record at which the final leader's log holds another one.

``poll-skip`` compares two deliveries of one process; this rule compares what all members were given with all that there
was, and so it also finds what is left out between a commit and the first record that the next member is given, or
before the first record of all. Each member begins where one of the group has committed, or at the beginning, so one of
them has read over the record. The record was there by then: a log that holds the later record has what the final log
has before it. Which member it was, and when, does not matter, and neither does what its polls said of their end.

Markers are no records, and a record of a transaction counts only where that was acknowledged and a commit marker closes
the record in the final leader's log: what was aborted, and what may have been, a group leaves out. In a partition that
has had an unclean election no record of a transaction counts, for a marker that was given up may have left it to
another one (see :mod:`checkers.views.transaction_markers`).

Judged are groups of which every commit in that partition was a member's, for any other may skip what it likes, unless
it was refused. Where the clients of a group commit by themselves (``auto_commit``), an offset with which the
coordinator has answered the question for the group's commit counts as one that a member has committed. What the last
leader's log does not hold, and what it holds in the end where the group was given something else, is not judged either.

Severity: ``VIOLATION``. ``DOCUMENTED`` when the record had been deleted on purpose by the time of that commit (see
:mod:`checkers.views.deletions`) and the configuration permits that, even if a later leader still holds it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache, partial

from checkers.views.frames import Frames
from checkers.views.group_operations import Whose, automatic, group_operations
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import Row, where
from checkers.views.timeline import Timeline
from checkers.views.transaction_markers import transaction_ends
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import UNKNOWN_MEMBER, attributed
from checkers.wire_tap.commit_grounds import committed, returned, row_of
from harness.anomaly import (
    NO_WORD,
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
from harness.checker import Attribution, Evidence
from harness.findings import Finding
from harness.model import TopicPartition

GROUP_SKIP = AnomalyKind(
    name="group-skip",
    invariants=("C7",),
    meaning="A group committed beyond a record that none of its members was given.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.HISTORY, Needs.VALUES}),
    follows_from=("poll-skip", "int-poll-skip"),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=False,
        retention=Retention.BEFORE_THE_POLL,
        fault=False,
        lossy_failure=LossyFailure.NEVER,
        with_cause=True,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.DELETION),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (GROUP_SKIP,)


Delivery = tuple[int | None, int | None]
"""What was given at an offset: the value, and the leader epoch; None: not known."""

Given = Mapping[int, set[Delivery]]
"""What a group was given of a partition, by offset."""


def find(history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds) -> Iterator[Finding]:
    """Reference: every record of one run's final logs that a group has passed and was not given."""
    given: dict[Whose, dict[int, set[Delivery]]] = defaultdict(lambda: defaultdict(set))
    furthest = _furthest(history)
    closed_by_commits = cache(partial(_closed_by_commits, history, timeline, logs, ends))
    for row in history.operations if furthest else ():
        if row["f"] == "poll" and row["type"] != "invoke" and None not in (row["topic"], row["group"]):
            given[Whose(row["group"], where(row))][row["offset"]].add((row["value"], row["leader_epoch"]))
    for whose, commit in furthest.items():
        for finding in _skipped(timeline, ends, whose.where, commit, given.get(whose, {})):
            is_plain = (whose.where, finding.value) not in history.transactional
            if is_plain or (finding.offset, finding.value) in closed_by_commits(whose.where):
                yield finding


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    return (
        f"A group committed offset {finding.until}, and was given offset {finding.other_offset}, but none of its "
        f"members was given offset {finding.offset}, where the final leader's log holds value {finding.value}."
    )


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the commit; which of the members read over the record is not known."""
    row = row_of(frames, finding)
    is_answer = row is not None and row["f"] == "committed"
    return attributed(returned(frames, finding) if is_answer else committed(frames, finding, row), UNKNOWN_MEMBER)


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The commit, the later record that the group was given, and the one that it was not."""
    yield from witnesses.commits(finding, finding.until)
    yield from witnesses.reads(finding, finding.other_offset, None)
    yield from witnesses.send(finding)
    yield from witnesses.holders(finding)


def _closed_by_commits(
    history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds, place: TopicPartition
) -> set[tuple[int, int]]:
    """The offsets and values of the records of transactions that a group is to be given."""
    if place not in history.marked or place in timeline.unclean:
        return set()
    closed = (end for end in transaction_ends(history, timeline, logs, ends, place) if end.closed == "commit")
    return {(end.offset, end.value) for end in closed if history.transactional[place, end.value].type == "ok"}


def _furthest(history: History) -> dict[Whose, Row]:
    """By group and partition, the row that shows the highest commit; without those that others committed."""
    found: dict[Whose, Row] = {}
    others: set[Whose] = set()
    by_themselves = automatic(history)
    for rows in group_operations(history):
        begun, ended = rows[0], rows[-1]
        if begun["group"] is None:
            continue
        whose = Whose(begun["group"], where(begun))
        if begun["f"] == "commit" and begun["generation"] is None and ended["type"] != "fail":
            others.add(whose)
        elif ended["type"] == "ok" and ended["offset"] is not None and _is_members(begun, whose in by_themselves):
            found[whose] = max(found.get(whose, ended), ended, key=lambda row: (row["offset"], -row["index"]))
    return {whose: row for whose, row in found.items() if whose not in others}


def _is_members(begun: Row, is_automatic: bool) -> bool:
    """Whether it is a commit of a member, or a question whose answer shows one."""
    return begun["generation"] is not None if begun["f"] == "commit" else is_automatic


def _skipped(
    timeline: Timeline, ends: PartitionEnds, place: TopicPartition, commit: Row, given: Given
) -> Iterator[Finding]:
    held = [row for row in ends.final_log(place) if row["offset"] < commit["offset"]]
    last = max((row["offset"] for row in held if _is_it(row, given.get(row["offset"], set()))), default=-1)
    lowest: dict[int, Row] = {}
    for row in held:
        if row["offset"] < last and row["offset"] not in given:
            lowest[row["offset"]] = min(
                lowest.get(row["offset"], row), row, key=lambda one: (one["value"], one["leader_epoch"])
            )
    deleted = timeline.deleted_to(place, commit["time_ns"])
    for offset, row in lowest.items():
        yield Finding(
            timeline.run, "group-skip", *place,
            offset=offset,
            value=row["value"],
            leader_epoch=row["leader_epoch"] if row["leader_epoch"] >= 0 else None,
            excuse="retention" if offset < deleted else None,
            row=commit["index"],
            time_ns=commit["time_ns"],
            process=commit["process"],
            other_offset=last,
            until=commit["offset"],
        )  # fmt: skip


def _is_it(row: Row, deliveries: set[Delivery]) -> bool:
    """Whether one of the deliveries was of the record in this row of a log."""
    epochs = {epoch for value, epoch in deliveries if value == row["value"]}
    return None in epochs or row["leader_epoch"] in epochs or (row["leader_epoch"] < 0 and bool(epochs))
