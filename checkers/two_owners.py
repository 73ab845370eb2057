"""A partition has one owner in its group at a time, as far as the coordinator can know who has it.

``two-owners``: a member was given a partition that another one of its group had, in one of these cases.

* *In the same generation*: the first was still there when the second subscribed. The leader of the group deals every
  partition out once, and the coordinator gives each member its own share. In the consumer protocol (KIP-848) a target
  assignment gives a partition to one member, in the epoch of that assignment. A static member that is started again
  has the generation and the share of its former self (KIP-345), which is gone by then.
* *In a later generation, in which the first owner was, too, or in a still later one, with the partition*. A member
  gives up before it joins what it may lose by that: all that it has, or, by the cooperative protocol (KIP-429), in one
  generation what another member is given in the next. One that was removed learns so, and has lost the partition
  before it joins again. In the consumer protocol a member comes into the epoch of a target assignment when it has
  released all that others are given by it: there it is found, too, when it has given the partition up by then, but
  after the second one was given it. A member that was removed joins in a later epoch than that.
* *In a later generation, before the first owner can have been removed* (classic protocol): it had joined less than a
  session timeout before (``guarantees.members_kept_ms``), which is no longer than the time it has to join again.

When a member joined is not recorded. It was after it had subscribed, and after the begin of a poll in which it lost
what it had, or gave something up in an earlier generation than the one in which it was then given the partition; the
time after which a member leaves that does not poll is counted from there, too. That a member has left shows by its
polls: it begins no other one; what it gives up as it leaves is in the rows of the last. A member that has been removed
without a word, and learns it late, is no anomaly: what it commits is refused (:mod:`checkers.stale_commit`).

Which generation a client is in, its answers from the coordinator say. In the classic protocol only a generation that
gave it a partition counts, which the coordinator has stored by then: the coordinator answers JoinGroup with a number
that it has not stored yet, and after a failover its successor may take that number again. A coordinator stores every
epoch of the consumer protocol before it answers with it, so that the epochs in which a member polls, and gives
something up, count there as well.

In real time a row of the consumer protocol names the epoch that its client has come to when its caller hears of a
partition, not the one in which the coordinator gave it: heartbeats go on meanwhile. There the rows must show, in the
same epoch, too, that both had the partition at one time, and then it may be the client that is at fault. A full
heartbeat, which follows an error, names what its caller has heard of; a coordinator takes a partition that it leaves
out for released, and gives it away, and librdkafka gives it to its caller all the same.

Severity: ``VIOLATION``. ``DOCUMENTED`` in the consumer protocol in real time (``overtaken``), and when every broker
failed lossily at one time after the first owner had subscribed (see :mod:`checkers.views.lossy_failures`): the group
may have gone back to an earlier generation. ``INDETERMINATE`` when the configuration permits unclean elections and by
then there had been a fault that may take a replica out, or such an election, for those of the groups' own topic are
not recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.memberships import is_known, subscriptions
from checkers.views.row import Row, where
from checkers.views.run_demands import RunDemands
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import UNKNOWN_ASSIGNMENT, attributed
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
from harness.history.schema import REBALANCES
from harness.model import TopicPartition

TWO_OWNERS = AnomalyKind(
    name="two-owners",
    invariants=("C12",),
    meaning="A member was given a partition that another one of its group had, and was not rid of.",
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
KINDS = (TWO_OWNERS,)


class Hold(NamedTuple):
    """A member was given a partition, in a row, and has it ``until`` another one, exclusive.

    Attributes:
        assigned: by the consumer protocol.
        until: the row in which a rebalance moves the partition again; where there is none, the member's last poll.
        lost: whether the member learned then that it had lost the partition.
    """

    row: int
    process: int
    time_ns: int
    generation: int
    assigned: bool
    until: int
    lost: bool


class Life(NamedTuple):
    """What one member of a group shows of its membership.

    Attributes:
        first: its first row of the history; ``last`` the last one.
        seen: the rows that prove it a member of a generation, and the generations.
        outside: the rows in which it had not joined yet, times before them from which on it stays for as long as it may
            be silent, and the generation that is over then; None: any.
    """

    first: int
    last: int
    seen: Sequence[tuple[int, int]]
    outside: Sequence[tuple[int, int, int | None]]


def find(history: History, demands: RunDemands) -> Iterator[Finding]:
    """Reference: every partition of one run that a member was given while another one had it."""
    lives = _Lives(history)
    for (_, place), holds in _holds(history).items():
        found: set[int] = set()
        for at, second in enumerate(holds):
            first = next((one for one in holds[:at] if lives.overlap(one, second, demands)), None)
            if first is not None and second.generation not in found:
                found.add(second.generation)
                yield Finding(
                    history.run, "two-owners", *place,
                    row=second.row,
                    time_ns=second.time_ns,
                    process=second.process,
                    until=second.generation,
                    since_ns=lives.subscribed.get(first.process, first.time_ns),
                    excuse=None if _names_its_epoch(second, demands) else "overtaken",
                )  # fmt: skip


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    return (
        f"Process {finding.process} was given a partition in generation {finding.until} that another member of its "
        f"group had, which had neither given it up nor been removed."
    )


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """What a generation gives its members is not in the frames' headers."""
    del finding, frames
    return attributed(UNKNOWN_ASSIGNMENT)


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The row in which the second owner was given the partition."""
    del witnesses
    if finding.row is not None:
        yield Evidence("history", {"index": finding.row}, f"process {finding.process} was given the partition")


class _Lives:
    """The members of one run's groups."""

    def __init__(self, history: History) -> None:
        self.subscribed = subscriptions(history)
        self._lives: dict[int, Life] = {}
        rows: dict[int, list[Row]] = defaultdict(list)
        for row in history.operations:
            rows[row["process"]].append(row)
        self._rows = rows

    def overlap(self, first: Hold, second: Hold, demands: RunDemands) -> bool:
        """Whether the first member must have been the owner still when the second one was given the partition."""
        if first.process == second.process:
            return False
        one, meanwhile = self._of(first.process), first.row < second.row < first.until
        if first.generation == second.generation:
            known = meanwhile or _names_its_epoch(second, demands)
            return known and one.last > self._of(second.process).first
        if first.generation > second.generation or not meanwhile:
            return False
        return _was_in(one, first, second) or _was_kept(one, first, second, demands.kept_ns)

    def _of(self, process: int) -> Life:
        if process not in self._lives:
            rows = self._rows[process]
            indices = [int(row["index"]) for row in rows]
            self._lives[process] = Life(min(indices), max(indices), [*_seen(rows)], [*_outside(rows)])
        return self._lives[process]


def _holds(history: History) -> Mapping[tuple[str, TopicPartition], list[Hold]]:
    """By group and partition, who was given it, in the order of the rows."""
    moves: dict[tuple[int, TopicPartition], list[Row]] = defaultdict(list)
    polled: dict[int, int] = {}
    for row in sorted(history.operations, key=lambda one: int(one["index"])):
        if row["f"] in REBALANCES and row["topic"] is not None:
            moves[row["process"], where(row)].append(row)
        elif _begins_poll(row):
            polled[row["process"]] = row["index"]
    found: dict[tuple[str, TopicPartition], list[Hold]] = defaultdict(list)
    for (process, place), rows in moves.items():
        ends = [*[(row["index"], row["f"] == "lost") for row in rows[1:]], (polled.get(process, 0), False)]
        for row, (until, lost) in zip(rows, ends, strict=True):
            if row["f"] == "assigned" and is_known(row):
                assigned = row["group_protocol"] == "consumer"
                found[row["group"], place].append(
                    Hold(row["index"], process, row["time_ns"], row["generation"], assigned, until, lost)
                )
    return {key: sorted(holds) for key, holds in found.items()}


def _begins_poll(row: Row) -> bool:
    return bool(row["f"] == "poll" and row["type"] == "invoke")


def _names_its_epoch(hold: Hold, demands: RunDemands) -> bool:
    """Whether the generation of the row is the one in which the coordinator gave the partition."""
    return demands.virtual or not hold.assigned


def _seen(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    for row in rows:
        by_epochs = row["group_protocol"] == "consumer"
        if row["generation"] is not None and (
            row["f"] == "assigned" or (by_epochs and (_begins_poll(row) or row["f"] == "revoked"))
        ):
            yield row["index"], row["generation"]


def _outside(rows: Sequence[Row]) -> Iterator[tuple[int, int, int | None]]:
    polls: dict[int, int] = {}
    for row in rows:
        if _begins_poll(row):
            polls[row["op"]] = min(row["time_ns"], polls.get(row["op"], row["time_ns"]))
    for row in rows:
        if row["f"] == "subscribe" and row["type"] == "invoke":
            yield row["index"], row["time_ns"], None
        elif row["op"] in polls and (row["f"] == "lost" or (row["f"] == "revoked" and row["generation"] is not None)):
            yield row["index"], polls[row["op"]], row["generation"] if row["f"] == "revoked" else None


def _was_in(one: Life, first: Hold, second: Hold) -> bool:
    """Whether the first owner was in the generation of the second, or a later one, before it was rid of the partition.

    In the consumer protocol, or afterwards in just that epoch.
    """
    released = first.assigned and not first.lost
    return any(
        row > first.row
        and ((generation >= second.generation and row < first.until) or (released and generation == second.generation))
        for row, generation in one.seen
    )


def _was_kept(one: Life, first: Hold, second: Hold, kept_ns: int | None) -> bool:
    """Whether the first owner had joined so short a time before that its coordinator cannot have removed it."""
    if kept_ns is None or first.assigned or second.assigned:
        return False
    joined_after_ns = (
        time_ns for row, time_ns, over in one.outside if row < first.row and (over is None or over < first.generation)
    )
    since_ns = max(joined_after_ns, default=None)
    return since_ns is not None and second.time_ns - since_ns < kept_ns
