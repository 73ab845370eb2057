"""A group has one generation at a time, and only its members commit.

* ``stale-commit``: a commit of a member was acknowledged although a later generation than the member's had been given
  its partitions before the commit began. The coordinator had begun that generation then, and refuses what is of another
  one, whichever partitions it is about, whatever the assignor, and from static members, too. In the consumer protocol
  (KIP-848) each member has an epoch of its own, which takes the place of the generation: there it is a commit to a
  partition that had been given to a member in a later epoch. Its former owner had released it, which raises that
  member's epoch, or had been removed.

What is compared are the generations that the clients name, not the times of their rows: a member may learn long after
it was given partitions that it was. A commit counts when its client was in one generation from its begin to its end,
and that one had been given its partitions before the later one was; one of a client that is in none does not, for a
group without members takes it. Which of two members may have a partition is asked by :mod:`checkers.two_owners`.

A coordinator that does not know of its successor cannot acknowledge a commit: it waits until every in-sync replica has
stored it, as it has waited before it gave a generation its partitions.

Severity: ``VIOLATION``. ``DOCUMENTED`` when every broker failed lossily at one time after the member of the later
generation had subscribed (see :mod:`checkers.views.lossy_failures`): the group may have gone back to an earlier one.
``INDETERMINATE`` when the configuration permits unclean elections and by then there had been a fault that may take a
replica out, or such an election, for those of the groups' own topic are not recorded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from checkers.views.frames import Frames
from checkers.views.group_operations import commits
from checkers.views.history import History
from checkers.views.memberships import is_known, subscriptions
from checkers.views.row import Row, where
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
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

STALE_COMMIT = AnomalyKind(
    name="stale-commit",
    invariants=("C12",),
    meaning="A commit was acknowledged to a member of a generation, or in an epoch, that was over.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.BETWEEN_COMMITS,
        with_cause=False,
        own_topic="offsets.topic.replication.factor",
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

KINDS = (STALE_COMMIT,)


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


def find(history: History) -> Iterator[Finding]:
    """Reference: every commit of one run by a member of a former generation."""
    given = [row for row in history.operations if row["f"] == "assigned" and is_known(row)]
    if not given:
        return
    subscribed = subscriptions(history)
    by_scope: dict[Scope, list[Given]] = defaultdict(list)
    for row in sorted(given, key=lambda r: int(r["index"])):
        by_scope[_scope(row)].append(_given(row))
    for begun, ended in commits(history):
        if ended["type"] == "ok" and is_known(begun) and begun["generation"] == ended["generation"]:
            yield from _stale(history, (begun, ended), by_scope[_scope(begun)], subscribed)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    return (
        f"A commit of offset {finding.offset} by a member of an earlier generation or epoch was acknowledged after "
        f"generation {finding.until} had been given its partitions."
    )


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the commit; what a generation gives its members is not in the frames' headers."""
    return attributed(committed(frames, finding, row_of(frames, finding)))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The commit."""
    if finding.offset is not None:
        yield from witnesses.commits(finding, finding.offset)


def _scope(row: Row) -> Scope:
    return Scope(row["group"], where(row) if row["group_protocol"] == "consumer" else None)


def _given(row: Row) -> Given:
    return Given(row["generation"], -row["index"], row["process"], row["time_ns"])


def _stale(
    history: History, commit: tuple[Row, Row], given: list[Given], subscribed: Mapping[int, int]
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
        since_ns=subscribed.get(latest.process, latest.time_ns),
    )  # fmt: skip
