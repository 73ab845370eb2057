"""A group has one generation at a time: only its members commit, and each partition has one owner in it.

* ``stale-commit``: a commit of a member was acknowledged although a later generation than the member's had been given
  its partitions before the commit began. The coordinator had begun that generation then, and refuses what is of another
  one, whichever partitions it is about, whatever the assignor, and from static members, too. In the consumer protocol
  (KIP-848) each member has an epoch of its own, which takes the place of the generation: there it is a commit to a
  partition that had been given to a member in a later epoch. Its former owner had released it, which raises that
  member's epoch, or had been removed.
* ``two-owners``: a partition was given to a member in the same generation in which another one had been given it, which
  was still there when the second subscribed. The leader of the group deals every partition out once, and the
  coordinator gives each member its own share. In the consumer protocol a target assignment gives a partition to one
  member, in the epoch of that assignment. A static member that is started again has the generation and the share of
  its former self (KIP-345), which is gone by then.

What is compared are the generations that the clients name, not the times of their rows: a member may learn long after
it was given partitions that it was. A commit counts when its client was in one generation from its begin to its end,
and that one had been given its partitions before the later one was; one of a client that is in none does not, for a
group without members takes it. Members that overlap in time in different generations are no anomaly: a member that is
cut off from its coordinator cannot know that it was removed, and what it commits is refused.

A coordinator that does not know of its successor cannot acknowledge a commit: it waits until every in-sync replica has
stored it, as it has waited before it gave a generation its partitions.

Severity: ``VIOLATION``. ``DOCUMENTED`` when every broker failed lossily at one time after the member of the later
generation, or the first owner, had subscribed (see :mod:`checkers.views.lossy_failures`): the group may have gone back
to an earlier generation. ``INDETERMINATE`` when the configuration permits unclean elections and by then there had been
a fault that may take a replica out, or such an election, for those of the groups' own topic are not recorded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from checkers.views.frames import Frames
from checkers.views.group_operations import commits
from checkers.views.history import History
from checkers.views.row import Row, where
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import UNKNOWN_ASSIGNMENT, attributed
from checkers.wire_tap.commit_grounds import committed, row_of
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

_EXCUSES = Excuses(
    unclean_election=True,
    retention=Retention.NEVER,
    fault=False,
    lossy_failure=LossyFailure.BETWEEN_COMMITS,
    with_cause=False,
    own_topic="offsets.topic.replication.factor",
    while_leading=True,
)

STALE_COMMIT = AnomalyKind(
    name="stale-commit",
    invariants=("C12",),
    meaning="A commit was acknowledged to a member of a generation, or in an epoch, that was over.",
    shows_loss=False,
    relies_on=frozenset({Needs.HISTORY}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=_EXCUSES,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

TWO_OWNERS = AnomalyKind(
    name="two-owners",
    invariants=("C12",),
    meaning="Two members of a group were given one partition in the same generation.",
    shows_loss=False,
    relies_on=frozenset({Needs.HISTORY}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=_EXCUSES,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (STALE_COMMIT, TWO_OWNERS)


class Given(NamedTuple):
    """A member was given partitions; of several, the greatest is the first one of the latest generation."""

    generation: int
    backwards: int
    process: int
    time_ns: int

    @property
    def row(self) -> int:
        """The position of its row in the history."""
        return -self.backwards


class Scope(NamedTuple):
    """In what generations follow each other: a group, or in the consumer protocol a partition that it reads."""

    group: str
    where: TopicPartition | None


class Presence(NamedTuple):
    """From which row of the history to which a process is known to be there, and when it subscribed."""

    first: int
    last: int
    subscribed_ns: int | None


def find(history: History) -> Iterator[Finding]:
    """Reference: every commit of one run by a member of a former generation, and every partition with two owners."""
    given = [row for row in history.operations if row["f"] == "assigned" and _is_known(row)]
    if not given:
        return
    present = _presences(history)
    by_scope: dict[Scope, list[Given]] = defaultdict(list)
    for row in sorted(given, key=lambda r: int(r["index"])):
        by_scope[_scope(row)].append(_given(row))
    for begun, ended in commits(history):
        if ended["type"] == "ok" and _is_known(begun) and begun["generation"] == ended["generation"]:
            yield from _stale(history, (begun, ended), by_scope[_scope(begun)], present)
    by_share: dict[tuple[str, int, TopicPartition], list[Given]] = defaultdict(list)
    for row in given:
        by_share[row["group"], row["generation"], where(row)].append(_given(row))
    for (_, _, place), owners in by_share.items():
        yield from _owned_twice(history, place, owners, present)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    if finding.kind == "two-owners":
        return f"Process {finding.process} was given a partition that another member has in generation {finding.until}."
    return (
        f"A commit of offset {finding.offset} by a member of an earlier generation or epoch was acknowledged after "
        f"generation {finding.until} had been given its partitions."
    )


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the commit; what a generation gives its members is not in the frames' headers."""
    if finding.offset is None:
        return attributed(UNKNOWN_ASSIGNMENT)
    return attributed(committed(frames, finding, row_of(frames, finding)))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The commit."""
    if finding.offset is not None:
        yield from witnesses.commits(finding, finding.offset)


def _is_known(row: Row) -> bool:
    return None not in (row["topic"], row["group"], row["generation"]) and row["generation"] >= 0


def _scope(row: Row) -> Scope:
    return Scope(row["group"], where(row) if row["group_protocol"] == "consumer" else None)


def _given(row: Row) -> Given:
    return Given(row["generation"], -row["index"], row["process"], row["time_ns"])


def _presences(history: History) -> Mapping[int, Presence]:
    found: dict[int, Presence] = {}
    for row in history.operations:
        at, subscribed = row["index"], row["time_ns"] if row["f"] == "subscribe" else None
        first, last, known = found.get(row["process"], Presence(at, at, None))
        times = [time_ns for time_ns in (known, subscribed) if time_ns is not None]
        found[row["process"]] = Presence(min(first, at), max(last, at), min(times, default=None))
    return found


def _since_ns(one: Given, present: Mapping[int, Presence]) -> int:
    """A time before the coordinator gave the partitions."""
    subscribed_ns = present[one.process].subscribed_ns
    return one.time_ns if subscribed_ns is None else subscribed_ns


def _stale(
    history: History, commit: tuple[Row, Row], given: list[Given], present: Mapping[int, Presence]
) -> Iterator[Finding]:
    begun, ended = commit
    epochs = begun["group_protocol"] == "consumer"  # a member keeps partitions from one epoch to the next
    own = min(
        (
            one.row
            for one in given
            if one.generation == begun["generation"] or (epochs and one.generation < begun["generation"])
        ),
        default=None,
    )
    before = given[: bisect_left(given, begun["index"], key=lambda one: one.row)]
    latest = max(before, default=None)
    if own is None or latest is None or latest.generation <= begun["generation"] or latest.row < own:
        return
    yield Finding(
        history.run, "stale-commit", *where(begun),
        offset=begun["offset"],
        row=ended["index"],
        time_ns=ended["time_ns"],
        process=ended["process"],
        until=latest.generation,
        since_ns=_since_ns(latest, present),
    )  # fmt: skip


def _owned_twice(
    history: History, place: TopicPartition, owners: list[Given], present: Mapping[int, Presence]
) -> Iterator[Finding]:
    """The first member that was given a share while another one had it."""
    owners.sort(key=lambda one: (one.row, one.process, one.time_ns))
    for at, second in enumerate(owners):
        for first in owners[:at]:
            if first.process != second.process and present[first.process].last > present[second.process].first:
                yield Finding(
                    history.run, "two-owners", *place,
                    row=second.row,
                    time_ns=second.time_ns,
                    process=second.process,
                    until=second.generation,
                    since_ns=_since_ns(first, present),
                )  # fmt: skip
                return
