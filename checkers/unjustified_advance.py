"""A leader commits only records that every member of its ISR, and of the controller's, has.

At every row in which a leader's high watermark or ISR has changed, every member of that ISR must be known to have the
log up to the watermark; and where the watermark has risen, so must every replica that may be elected: the members of
the controller's last ISR, and its eligible leader replicas. A leader waits for replicas that it has proposed before the
controller decides, and for those that it wants to remove until the controller has decided, so it never waits for fewer.
A decision of another leader epoch, or older than the leader's own state, does not count:

* ``unjustified-advance``: the watermark rose, and a member's log did not reach it; or a member was in an older leader
  epoch, so that it cannot have fetched in the leader's (T7). A leader that goes on in the very next epoch, as one whose
  ISR shrinks does in old generations, is judged by the epoch since which it has led without a break.
* ``unjustified-join``: the watermark had been there before, and a member's log does not reach it: a replica counts as
  in sync that is not (T10, T6, and so R4: it may be elected). Or the controller adds a replica to the ISR that had not
  been in it in that leader epoch, and whose log, by its rows in that epoch, never reached the leader's log end at the
  beginning of the epoch: a new leader's watermark lags, and a replica that has reached only that may lack committed
  records (KAFKA-7128).

A member's log reaches as far as the furthest end in its rows since it last cut its log; rows of the same instant count.
What a crash took does not count against the leader, which cannot know. Members without a row are not judged. All nodes
write to one clock, and a follower writes its row before its next fetch, so a leader that has counted a fetch is never
earlier than the row.

One anomaly for each leader, epoch and member: the first such row, of leaders and of the controller. ``offset`` is the
first that the member lacks (or, if it is in an older epoch, the first that was committed without it),
``until`` the watermark, or where the epoch began.

Severity: ``VIOLATION``. ``DOCUMENTED`` before 2.1, where leaders count the fetches of followers in other epochs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from checkers.views.row import Row, detail, where
from checkers.views.timeline import Timeline
from checkers.views.witnesses import Witnesses
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    Needs,
    Sampled,
    Since,
    Unseen,
)
from harness.checker import Evidence
from harness.findings import Finding
from harness.model import CONTROLLER_ID, TopicPartition

UNJUSTIFIED_ADVANCE = AnomalyKind(
    name="unjustified-advance",
    invariants=("R4", "T6", "T7", "T11"),
    meaning="A leader committed records that a member of its ISR did not have.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE, Needs.ISR}),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.RANGE,
    excuses=NOTHING,
    since=Since(
        generation="2.1", why_not_before="a leader counts the fetches of followers that live in another epoch (KIP-320)"
    ),
    sampled=Sampled(found=Found.NONE, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

UNJUSTIFIED_JOIN = AnomalyKind(
    name="unjustified-join",
    invariants=("R4", "T6", "T10"),
    meaning="A leader counted a replica as in sync that lacked what was committed.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE, Needs.ISR}),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.RANGE,
    excuses=NOTHING,
    since=Since(
        generation="2.1", why_not_before="a leader counts the fetches of followers that live in another epoch (KIP-320)"
    ),
    sampled=Sampled(found=Found.NONE, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (UNJUSTIFIED_ADVANCE, UNJUSTIFIED_JOIN)


class _Claim(NamedTuple):
    """A leader's row: it counts ``member`` as in sync.

    ``before``: its watermark a row before, in that epoch. ``since``: the epoch since which it has led.
    """

    member: int
    row: Row
    before: int | None
    since: int

    @property
    def rose(self) -> bool:
        """Whether the watermark rose in this row."""
        return self.before is not None and (self.row["high_watermark"] or 0) > self.before


class _Reached(NamedTuple):
    """What a replica's rows say up to a time: its log's furthest end since it last cut it, and its newest epoch."""

    time_ns: int
    offset: int | None
    epoch: int | None


def find(timeline: Timeline) -> Iterator[Finding]:
    """Reference: for each leader, epoch and member the first row that counts on records that are not there."""
    by_replica: dict[tuple[TopicPartition, int], list[Row]] = defaultdict(list)
    decisions: dict[TopicPartition, list[Row]] = defaultdict(list)
    for row in sorted(timeline.rows, key=_time):
        if row["topic"] is not None and row["kind"] in WITH_LOG_END:
            by_replica[where(row), row["node"]].append(row)
        elif row["topic"] is not None and row["kind"] in DECISIONS and row["node"] == CONTROLLER_ID:
            decisions[where(row)].append(row)
    reached = {replica: list(_reached(own_rows)) for replica, own_rows in by_replica.items()}
    for (place, node), own_rows in by_replica.items():
        found: dict[tuple[int, int, int], Finding] = {}
        for claim in _claims(own_rows, decisions[place]):
            key = (claim.row["incarnation"], claim.row["leader_epoch"], claim.member)
            finding = _unfounded(timeline.run, place, claim, reached.get((place, claim.member), []))
            if finding is not None and node != claim.member:
                found.setdefault(key, finding)
        yield from found.values()
    for place, own_rows in decisions.items():
        yield from _let_in(timeline.run, place, own_rows, by_replica)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    if finding.node == CONTROLLER_ID:
        return (
            f"Node {finding.other_node} came into the ISR of epoch {finding.leader_epoch} with its log up to "
            f"{finding.offset} only, although that epoch's leader began it with its own up to {finding.until}."
        )
    leader = f"Node {finding.node}, leader in epoch {finding.leader_epoch}"
    if finding.kind == "unjustified-join":
        return (
            f"{leader}, counts node {finding.other_node} as in sync, which has its log up to {finding.offset} only, "
            f"although everything below {finding.until} is committed."
        )
    return (
        f"{leader}, committed offsets {finding.offset} to {(finding.until or 1) - 1} although node "
        f"{finding.other_node}, which is in the ISR, is not known to have them."
    )


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The leader's row, or the controller's, and what became of the offset."""
    row = {"node": finding.node or 0, "incarnation": finding.incarnation or 0, "sequence": finding.row or 0}
    let_in = f"the controller had node {finding.other_node} in the ISR from here on"
    committed = f"node {finding.node} had committed up to {finding.until}"
    yield Evidence("timeline", row, let_in if finding.node == CONTROLLER_ID else committed)
    yield from witnesses.decision(finding)
    yield from witnesses.cuts(finding)
    yield from witnesses.holders(finding)


def _claims(own_rows: Sequence[Row], decisions: Sequence[Row]) -> Iterator[_Claim]:
    """The rows of one replica as a leader in which its watermark or its ISR differs from the row before."""
    before: Row | None = None
    since = -1
    for row in sorted((r for r in own_rows if r["kind"] == "state"), key=lambda r: (r["incarnation"], r["sequence"])):
        led = before is not None and _led(before) == _led(row)
        mark = (before["high_watermark"] or 0) if led and before is not None else None
        same = led and before is not None and mark == (row["high_watermark"] or 0) and before["isr"] == row["isr"]
        if before is None or not _goes_on(before, row):
            since = -1 if row["leader_epoch"] is None else row["leader_epoch"]
        if row["role"] == "leader" and row["isr"] is not None and not same:
            claims = (_Claim(member, row, mark, since) for member in sorted({*row["isr"], *_may_lead(row, decisions)}))
            yield from (one for one in claims if one.member != row["node"] and (one.rose or one.member in row["isr"]))
        before = row


def _may_lead(row: Row, decisions: Sequence[Row]) -> Iterable[int]:
    """The replicas that the controller may elect, unless the leader knows of decisions that the timeline lacks."""
    known = bisect_right(decisions, row["time_ns"], key=lambda decision: int(decision["time_ns"]))
    last, heard = decisions[known - 1] if known else None, row["partition_epoch"]
    if last is None or last["leader_epoch"] != row["leader_epoch"]:
        return ()
    if None in (heard, last["partition_epoch"]) or last["partition_epoch"] < heard:
        return ()
    return (*(last["isr"] or ()), *(detail(last).get("elr") or ()))


def _goes_on(before: Row, row: Row) -> bool:
    """Whether the leader of a row goes on in that epoch, or in the next."""
    leads = before["role"] == "leader" and before["incarnation"] == row["incarnation"]
    known = before["leader_epoch"] is not None and row["leader_epoch"] is not None
    return leads and known and row["leader_epoch"] - before["leader_epoch"] in (0, 1)


def _led(row: Row) -> tuple[object, ...]:
    return row["incarnation"], row["role"], row["leader_epoch"]


def _reached(own_rows: Iterable[Row]) -> Iterator[_Reached]:
    """By row of a replica, in order of time, what its log has reached then."""
    offset = epoch = None
    for row in own_rows:
        cut = row["kind"] != "state"
        offset = _higher(None if cut else offset, row["log_end_offset"])
        epoch = _higher(epoch, row["leader_epoch"])
        yield _Reached(row["time_ns"], offset, epoch)


def _higher(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else max(one, other)


def _unfounded(run: str, place: TopicPartition, claim: _Claim, member: Sequence[_Reached]) -> Finding | None:
    """A finding, if what the member had reached does not justify the claim."""
    row = claim.row
    known = bisect_right(member, row["time_ns"], key=attrgetter("time_ns"))
    if not known:
        return None
    _, reached, epoch = member[known - 1]
    mark = row["high_watermark"] or 0
    unheard = claim.rose and (row["leader_epoch"] if epoch is None else epoch) < claim.since
    if reached is None or (mark <= reached and not unheard):
        return None
    return Finding(
        run, "unjustified-advance" if claim.rose else "unjustified-join", *place,
        offset=reached if mark > reached else claim.before,
        leader_epoch=row["leader_epoch"],
        row=row["sequence"],
        time_ns=row["time_ns"],
        node=row["node"],
        incarnation=row["incarnation"],
        other_node=claim.member,
        until=mark,
    )  # fmt: skip


def _let_in(
    run: str,
    place: TopicPartition,
    decisions: Sequence[Row],
    by_replica: Mapping[tuple[TopicPartition, int], list[Row]],
) -> Iterator[Finding]:
    """A finding for every replica that joined the ISR without having reached the start of its leader's epoch."""
    found: set[tuple[int, int]] = set()
    for before, row in pairwise(decisions):
        epoch = row["leader_epoch"]
        if epoch is None or epoch != before["leader_epoch"] or None in (row["isr"], before["isr"]):
            continue
        start = _start_of(epoch, by_replica.get((place, row["leader"]), []))
        for member in sorted({*row["isr"]} - {*before["isr"], row["leader"]}):
            member_rows = [
                r["log_end_offset"]
                for r in by_replica.get((place, member), [])
                if r["leader_epoch"] == epoch and r["time_ns"] <= row["time_ns"] and r["log_end_offset"] is not None
            ]
            if start is not None and member_rows and max(member_rows) < start and (epoch, member) not in found:
                found.add((epoch, member))
                yield Finding(
                    run, "unjustified-join", *place,
                    offset=max(member_rows),
                    leader_epoch=epoch,
                    row=row["sequence"],
                    time_ns=row["time_ns"],
                    node=row["node"],
                    incarnation=row["incarnation"],
                    other_node=member,
                    until=start,
                )  # fmt: skip


def _start_of(leader_epoch: int, own_rows: Sequence[Row]) -> int | None:
    """Where a replica's log ended when it began to lead in an epoch; None: it did not, or this is not known."""
    led = [r for r in own_rows if (r["kind"], r["role"], r["leader_epoch"]) == ("state", "leader", leader_epoch)]
    first = min(led, key=lambda r: (r["incarnation"], r["sequence"]), default=None)
    start: int | None = first["log_end_offset"] if first is not None else None
    return start


def _time(row: Row) -> tuple[int, int, int]:
    return row["time_ns"], row["incarnation"], row["sequence"]


DECISIONS = frozenset({"election", "isr"})
"""The kinds of the controller's rows that name an ISR."""

WITH_LOG_END = frozenset({"state", "truncation", "log_start"})
"""The kinds of rows with a log end, while its broker runs. The last two record that the log was cut."""
