"""A leader, and every replica that may be elected, has the committed records, not only as many (R3, R4).

* ``incomplete-leader``: a leader began its epoch with a log that is long enough, and holds other records where records
  of an earlier epoch had been committed. What a leader of epoch e wrote and committed begins at its log end when it
  became leader; what another replica had there before it was in e, and has not cut since, is something else (see
  :mod:`checkers.views.unclean_elections`). What was deleted on purpose does not count. A log that is too short is a
  ``hw-regression``.
* ``incomplete-candidate``: the controller has a replica in the ISR, or as an eligible leader replica, that cut its log
  below what was committed by then, and has not reported since that its log reaches that far again. What a crash took
  does not count: the controller learns of it when the broker is back.

One anomaly for each leader and epoch, and for each candidate and cut: the first.

Severity: ``VIOLATION``. ``DOCUMENTED`` before 2.1, where followers fetch records of epochs that they do not know yet,
and cut what is committed. An ``incomplete-leader`` is ``DOCUMENTED`` when its election was unclean, or no leader began
between an unclean one and it, and the configuration permits such elections. A candidate need not have what was given
up, nor what a later leader lacked: that is a ``hw-regression``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from checkers.views.conclusion import Conclusion, age, cite, detail, seen_at
from checkers.views.copies import cut_at
from checkers.views.states import States
from checkers.views.unclean_elections import End, had_before
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Excuses,
    Found,
    LossyFailure,
    Needs,
    Retention,
    Sampled,
    Since,
    Unseen,
)
from harness.facts import StateInterval
from harness.model import TopicPartition

INCOMPLETE_LEADER = AnomalyKind(
    name="incomplete-leader",
    invariants=("R3",),
    meaning="A leader began with something else in its log where records had been committed.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE}),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.RANGE,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.NEVER,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=Since(
        generation="2.1", why_not_before="followers get records of epochs that they have not heard of (KIP-320)"
    ),
    sampled=Sampled(found=Found.NONE, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

INCOMPLETE_CANDIDATE = AnomalyKind(
    name="incomplete-candidate",
    invariants=("R4",),
    meaning="A replica may be elected that has cut committed records off its log.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE, Needs.ISR}),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.RANGE,
    excuses=NOTHING,
    since=Since(
        generation="2.1",
        why_not_before="followers cut what is committed, and are counted while they live in another epoch",
    ),
    sampled=Sampled(found=Found.NONE, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (INCOMPLETE_LEADER, INCOMPLETE_CANDIDATE)


class _Term(NamedTuple):
    """The leadership of one broker in one epoch. ``last``: the interval with its highest watermark."""

    first: StateInterval
    last: StateInterval

    @property
    def epoch(self) -> int:
        return self.first.leader_epoch or 0

    @property
    def written(self) -> range:
        """The offsets that it wrote and committed."""
        return range(self.first.first_log_end or 0, self.last.high_watermark or 0)


def conclude(states: States) -> Iterator[Conclusion]:
    """Every breach in one run."""
    for place, nodes in states.reported.items():
        terms = _terms(nodes)
        for after in terms:
            yield from _overwritten(states, place, after, [one for one in terms if one.epoch < after.epoch], nodes)
        yield from _candidates(states, place, terms, nodes)


def _terms(nodes: Mapping[int, Sequence[StateInterval]]) -> list[_Term]:
    found: dict[tuple[int, int], _Term] = {}
    for one in sorted((x for intervals in nodes.values() for x in intervals), key=lambda x: x.begin_ns):
        if one.role == "leader" and one.kind == "state" and one.leader_epoch is not None:
            known = found.setdefault((one.leader_epoch, one.node), _Term(one, one))
            if (one.high_watermark or 0) > (known.last.high_watermark or 0):
                found[one.leader_epoch, one.node] = known._replace(last=one)
    return [found[key] for key in sorted(found)]


# --------------------------------------------------------------------------------------------------------- leaders


def _overwritten(
    states: States,
    place: TopicPartition,
    after: _Term,
    terms: Sequence[_Term],
    nodes: Mapping[int, Sequence[StateInterval]],
) -> Iterator[Conclusion]:
    ends = _ends(nodes[after.first.node], after)
    log_end, log_start = after.first.first_log_end or 0, after.first.log_start_offset or 0
    for before in terms:
        kept = range(max(before.written.start, log_start), before.written.stop)
        if before.first.node == after.first.node or not kept:
            continue
        other = range(kept.start, min(had_before(ends, before.epoch, log_end), kept.stop))
        if not other:
            continue
        if _given_up_since(states, place, before, after, other.start):
            continue
        words = f"node {before.first.node} had committed up to {before.last.high_watermark} in epoch {before.epoch}"
        yield Conclusion(
            states.finding(
                "incomplete-leader", place, offset=other.start, until=other.stop, leader_epoch=after.epoch,
                excuse="unclean" if _is_unclean(states, place, after) else None, **seen_at(after.first),
            ),
            f"Node {after.first.node}, leader in epoch {after.epoch}, holds something else at offsets {other.start} to "
            f"{other.stop - 1}, got before it heard of epoch {before.epoch}, in which they had been committed.",
            (cite(before.last, words, before.last.end_sequence), cite(after.first, "it began with that log here")),
        )  # fmt: skip
        return


def _ends(intervals: Sequence[StateInterval], term: _Term) -> list[End]:
    return [
        End(x.leader_epoch, min(x.first_log_end, x.log_end_offset), x.log_end_offset)
        for x in intervals
        if x.kind == "state" and x.leader_epoch is not None and x.leader_epoch < term.epoch
        and x.first_log_end is not None and x.log_end_offset is not None
    ]  # fmt: skip


def _is_unclean(states: States, place: TopicPartition, term: _Term) -> bool:
    return any(
        term.epoch in (election.leader_epoch, election.taken) for election in states.unclean_elections.get(place, ())
    )


def _given_up_since(states: States, place: TopicPartition, before: _Term, after: _Term, offset: int) -> bool:
    """Whether an unclean election between the two had already given up what was committed."""
    elections = (
        election
        for election in states.unclean_elections.get(place, ())
        if election.leader_epoch < after.epoch != election.taken
    )
    return any(election.gave_up(before.epoch, offset) for election in elections)


# ------------------------------------------------------------------------------------------------------ candidates


def _candidates(
    states: States, place: TopicPartition, terms: Sequence[_Term], nodes: Mapping[int, Sequence[StateInterval]]
) -> Iterator[Conclusion]:
    seen: set[StateInterval] = set()
    seen_states = [one for intervals in nodes.values() for one in intervals if one.kind == "state"]
    for decision in states.decided.get(place, []):
        most = max(_marks(seen_states, decision), key=lambda mark: mark.high_watermark, default=None)
        if most is None or _is_gone(states, place, most, terms):
            continue
        for node in sorted({*(decision.isr or ()), *(detail(decision).get("elr") or ())}):
            cut, reached = _cut(nodes.get(node, ()), decision)
            if cut is None or cut in seen or reached >= most.high_watermark:
                continue
            seen.add(cut)
            yield Conclusion(
                states.finding(
                    "incomplete-candidate", place, offset=reached, until=most.high_watermark,
                    leader_epoch=decision.leader_epoch, other_node=node, **seen_at(decision),
                ),
                f"The controller has node {node} among those who may lead, which has its log up to {reached} only "
                f"since it cut it, although everything below {most.high_watermark} is committed.",
                (
                    cite(
                        most.interval, f"node {most.interval.node} had committed up to {most.high_watermark}", most.row
                    ),
                    cite(cut, f"node {node} cut its log here"),
                    cite(decision, f"ISR {list(decision.isr or ())}, eligible {detail(decision).get('elr') or []}"),
                ),
            )  # fmt: skip


class _Mark(NamedTuple):
    """A high watermark, and the row that shows it."""

    interval: StateInterval
    high_watermark: int
    row: int


def _marks(states: Sequence[StateInterval], decision: StateInterval) -> Iterator[_Mark]:
    """The high watermarks before a decision, in the epochs until then."""
    for one in states:
        if (one.leader_epoch or 0) <= (decision.leader_epoch or 0):
            if one.end_ns <= decision.begin_ns:
                yield _Mark(one, one.high_watermark or 0, one.end_sequence)
            elif one.begin_ns <= decision.begin_ns:
                yield _Mark(one, one.first_high_watermark or 0, one.sequence)


def _is_gone(states: States, place: TopicPartition, most: _Mark, terms: Sequence[_Term]) -> bool:
    """Whether what was committed was given up, or lost by a later leader, which is a finding of its own."""
    epoch, mark = most.interval.leader_epoch or 0, most.high_watermark
    given_up = any(election.gave_up(epoch, mark - 1) for election in states.unclean_elections.get(place, ()))
    return given_up or any(term.epoch > epoch and (term.first.first_log_end or 0) < mark for term in terms)


def _cut(intervals: Sequence[StateInterval], decision: StateInterval) -> tuple[StateInterval | None, int]:
    """A replica's last truncation before a decision, and how far its log has reached since."""
    until_then = [x for x in intervals if x.begin_ns <= decision.begin_ns]
    cuts = [x for x in until_then if x.kind == "truncation"]
    if not cuts:
        return None, 0
    since = [x for x in until_then if age(x) > age(cuts[-1]) and x.incarnation == cuts[-1].incarnation]
    if any(x.incarnation > cuts[-1].incarnation for x in until_then):
        return None, 0
    ends = [x.log_end_offset for x in since if x.kind == "state" and x.log_end_offset is not None]
    return cuts[-1], max([cut_at(cuts[-1]) or 0, *ends])
