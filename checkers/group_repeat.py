"""A member of a group begins where its group has committed, and is not given again what lies before that.

* ``group-repeat``: the first record of a partition that a member was given, since the group gave it the partition, lies
  before every offset that the coordinator answered to the group as its commit in the meantime, and before every commit
  of the group that ended in the meantime and was not refused.

``lost-commit`` judges what the coordinator answers, this rule whether the member begins there; ``nonmonotonic-poll``
compares the deliveries that follow, and ``group-skip`` finds a member that begins behind the commit. Of several answers
the lowest counts, for one of them may be another member's. The poll that learned of the assignment counts only where
the member never had the partition before: it may deliver a record that was fetched for an earlier assignment, by which
the client had not begun yet.

Judged are members that name their generation, which seawall runs: others may seek wherever they like. A group in which
a member has learned that it is out of range is not judged from there on, for the next member begins at the beginning.

Some members seek to the answer. Others leave it to their client, which asks the coordinator itself, as a rule after
that answer; the history does not say which do.

Severity: ``VIOLATION``. ``INDETERMINATE`` when in the time between assignment and delivery, or up to five seconds
before, a fault had brokers cut off from one another, or stand still, or took from their disks what was not flushed: the
client may have been answered by a coordinator that did not know of its successor, or has lost the commit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from checkers.views.cuts import LEARNS_NS, MAY_BE_DEPOSED, may_be_deposed
from checkers.views.fault_journal import FaultJournal
from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.row import Row, where
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.poll_grounds import delivered, sent_as_asked
from faults import traits_of
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
from harness.downtime import in_force
from harness.fault import DiskEffect
from harness.findings import Finding
from harness.history.schema import REBALANCES
from harness.model import TopicPartition

GROUP_REPEAT = AnomalyKind(
    name="group-repeat",
    invariants=("C7",),
    meaning="A member of a group began before the offset that the coordinator had answered as the group's commit.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (GROUP_REPEAT,)

_MAY_HAVE_LOST = "a fault took from disks what was not flushed, and the commit may have been among it"

_index = itemgetter("index")

Owned = tuple[int, TopicPartition]
"""A process, and a partition that a group gave it."""


class _Told(NamedTuple):
    """What the members of one run were given and told: rows in their order.

    ``commits``: by group, the answers to the question for its commit, and its commits that were not refused.
    ``lost``: by group, the first row by which a member learned that it is out of range.
    """

    moves: dict[Owned, list[Row]]
    given: dict[Owned, list[Row]]
    commits: dict[tuple[str, TopicPartition], list[Row]]
    lost: dict[str, int]


def find(history: History) -> Iterator[Finding]:
    """Reference: every member of one run that began before what its group had committed."""
    told = _told(history)
    for owned, changes in told.moves.items():
        for number, change in enumerate(changes):
            group, given = change["group"], told.given[owned]
            if change["f"] == "assigned" and None not in (change["generation"], group):
                end = changes[number + 1]["index"] if number + 1 < len(changes) else None
                first = _first(given, change, end, is_new=number == 0)
                if first is not None and first["index"] < told.lost.get(group, first["index"] + 1):
                    yield from _repeated(history, change, first, told.commits[group, owned[1]])


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    return (
        f"Process {finding.process} was given a partition whose committed offset was {finding.other_offset}, and began "
        f"at offset {finding.offset}."
    )


def doubt(finding: Finding, journal: FaultJournal) -> str:
    """Why a client that begins by itself may have been answered an earlier commit than its member; empty: no."""
    since_ns, until_ns = finding.since_ns, finding.time_ns
    if since_ns is None or until_ns is None:
        return ""
    if may_be_deposed(journal, since_ns - LEARNS_NS, until_ns):
        return MAY_BE_DEPOSED
    loses = any(
        traits_of(fault["kind"]).disk is not DiskEffect.NOTHING
        and in_force(fault["injected_ns"], fault["heal_proven_ns"], since_ns - LEARNS_NS, until_ns)
        for fault in journal.faults
    )
    return _MAY_HAVE_LOST if loses else ""


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on where its client begins, which may be what its coordinator answered it."""
    return attributed(delivered(frames, finding, finding.offset, finding.value), sent_as_asked(frames, finding))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The last commit of that offset, and the first delivery."""
    yield from witnesses.commits(finding, finding.other_offset)
    yield from witnesses.read_by(finding, finding.offset, finding.row)


def _told(history: History) -> _Told:
    told = _Told(defaultdict(list), defaultdict(list), defaultdict(list), {})
    for row in sorted(history.operations, key=lambda one: int(one["index"])):
        match row["f"], row["type"]:
            case "out_of_range", _ if row["group"] is not None:
                told.lost.setdefault(row["group"], row["index"])
            case f, _ if f in REBALANCES and row["topic"] is not None:
                told.moves[row["process"], where(row)].append(row)
            case "poll", "ok" | "info" | "fail" if row["topic"] is not None:
                told.given[row["process"], where(row)].append(row)
            case ("committed", "ok") | ("commit", "ok" | "info") if None not in (row["topic"], row["group"]):
                told.commits[row["group"], where(row)].append(row)
    return told


def _first(given: list[Row], change: Row, end: int | None, *, is_new: bool) -> Row | None:
    """The first delivery after an assignment, and before the partition was moved again."""
    for row in islice(given, bisect_right(given, change["index"], key=_index), None):
        if end is not None and row["index"] >= end:
            return None
        if is_new or row["op"] != change["op"]:
            return row
    return None


def _repeated(history: History, change: Row, first: Row, commits: list[Row]) -> Iterator[Finding]:
    since = bisect_right(commits, change["index"], key=_index)
    meanwhile = commits[since : bisect_left(commits, first["index"], key=_index)]
    offsets = [row["offset"] for row in meanwhile]
    is_told = any(row["f"] == "committed" for row in meanwhile)
    if is_told and None not in offsets and first["offset"] < min(offsets):
        yield Finding(
            history.run, "group-repeat", *where(first),
            offset=first["offset"],
            value=first["value"],
            leader_epoch=first["leader_epoch"],
            row=first["index"],
            time_ns=first["time_ns"],
            process=first["process"],
            other_offset=min(offsets),
            since_ns=change["time_ns"],
        )  # fmt: skip
