"""What the nodes of one run recorded in its timeline: who led, what was deleted, what elections gave up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from checkers.views.deletions import Deletion, Start, deletions
from checkers.views.row import Row, Send, detail, where
from checkers.views.terms import Term, terms
from checkers.views.unclean_elections import End, LeaderStart, UncleanElection, unclean_elections
from harness.model import CONTROLLER_ID, TopicPartition


class Life(NamedTuple):
    """One incarnation of a node: its last row, and when the next incarnation wrote its first (None: never)."""

    last_ns: int
    next_ns: int | None


@dataclass(frozen=True)
class Timeline:
    """What nodes recorded.

    Attributes:
        rows: every row of the table.
        sampled: whether they are samples of the brokers' states (:mod:`checkers.views.sampled_timelines`).
    """

    run: str
    rows: Sequence[Row]
    sampled: bool

    @cached_property
    def terms(self) -> dict[TopicPartition, list[Term]]:
        """Every term of every replica: by partition; see :class:`Term`."""
        rows: dict[tuple[TopicPartition, int], dict[tuple[Any, ...], list[Row]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for row in self.rows:
            if row["kind"] == "state" and row["topic"] is not None:
                key = (row["incarnation"], row["role"], row["leader_epoch"])
                rows[where(row), row["node"]][key].append(row)
        found: dict[TopicPartition, list[Term]] = defaultdict(list)
        for (place, _), groups in rows.items():
            found[place] += terms(groups.values())
        return found

    def leader_terms(self, place: TopicPartition) -> list[Term]:
        """The terms of leaders of ``place``, by epoch and then by time."""
        terms = [t for t in self.terms.get(place, []) if t.role == "leader"]
        return sorted(terms, key=lambda t: (t.leader_epoch, t.begin_ns, t.node))

    def leaders_since(self, place: TopicPartition, begin_ns: int) -> list[Term]:
        """The terms of leaders of ``place`` that had not ended before then, by epoch and then by time."""
        return [term for term in self.leader_terms(place) if term.end_ns is None or term.end_ns >= begin_ns]

    def leaders_during(self, send: Send) -> list[Term]:
        """The terms of leaders of the send's partition that overlap the send."""
        return self.leaders_between(send.where, send.invoked_ns, send.completed_ns)

    def leaders_between(self, place: TopicPartition, begin_ns: int, end_ns: int) -> list[Term]:
        """The terms of leaders of ``place`` that overlap the time; in a sampled timeline those that may.

        There a term may have begun before the first sample of it.
        """
        return [
            term
            for term in self.leader_terms(place)
            if (self.sampled or term.begin_ns <= end_ns) and (term.end_ns is None or term.end_ns >= begin_ns)
        ]

    def may_have_lacked(self, place: TopicPartition, leader_epoch: int, begin_ns: int, end_ns: int) -> bool:
        """Whether a leader of an earlier epoch than a record's, which need not have it, may have led in that time."""
        return any(term.leader_epoch < leader_epoch for term in self.leaders_between(place, begin_ns, end_ns))

    @cached_property
    def lives(self) -> dict[tuple[int, int], Life]:
        """Every incarnation of every node, by node and incarnation."""
        times: dict[tuple[int, int], list[int]] = defaultdict(list)
        for row in self.rows:
            if row["kind"] != "final":
                times[row["node"], row["incarnation"]].append(row["time_ns"])
        keys = sorted(times)
        nexts = {a: min(times[b]) for a, b in pairwise(keys) if a[0] == b[0]}
        return {key: Life(max(times[key]), nexts.get(key)) for key in keys}

    @cached_property
    def log_starts(self) -> dict[TopicPartition, list[Start]]:
        """Where the replicas' logs started, by partition: every row that says so."""
        starts: dict[TopicPartition, list[Start]] = defaultdict(list)
        for row in self.rows:
            if row["topic"] is not None and row["kind"] in ("state", "log_start"):
                starts[where(row)].append(_start(row))
        return starts

    @cached_property
    def deletions(self) -> dict[TopicPartition, list[Deletion]]:
        """What was deleted on purpose, by partition."""
        last_ns: dict[tuple[int, int], int] = defaultdict(int)
        for row in (r for r in self.rows if r["kind"] != "final" or r["role"] != "offline"):
            life = row["node"], row["incarnation"]
            last_ns[life] = max(last_ns[life], row["time_ns"])
        return {place: deletions(found, last_ns) for place, found in self.log_starts.items()}

    def deleted_to(self, place: TopicPartition, until_ns: int) -> int:
        """Up to which offset (exclusive) was deleted on purpose by then; see :mod:`checkers.views.deletions`."""
        return max((x.log_start for x in self.deletions.get(place, []) if x.time_ns <= until_ns), default=0)

    @cached_property
    def last_isr(self) -> dict[TopicPartition, frozenset[int]]:
        """The ISR by the controller's last decision that names one, by partition."""
        decided = [
            row
            for row in self.rows
            if row["node"] == CONTROLLER_ID and row["kind"] in ("election", "isr") and row["isr"] is not None
        ]
        last = sorted(decided, key=lambda row: (row["incarnation"], row["sequence"]))
        return {where(row): frozenset(row["isr"]) for row in last if row["topic"] is not None}

    @cached_property
    def unclean(self) -> dict[TopicPartition, list[tuple[int, int]]]:
        """The unclean elections: by partition, when and for which leader epoch."""
        found: dict[TopicPartition, list[tuple[int, int]]] = defaultdict(list)
        for row in self.rows:
            if row["kind"] == "election" and row["topic"] is not None and detail(row).get("clean") is False:
                found[where(row)].append((row["time_ns"], row["leader_epoch"]))
        return found

    @cached_property
    def unclean_elections(self) -> dict[TopicPartition, list[UncleanElection]]:
        """What the unclean elections gave up, by partition."""
        return {
            place: list(unclean_elections(elections, self._leader_starts(place), self._log_ends.get(place, {})))
            for place, elections in self.unclean.items()
        }

    def _leader_starts(self, place: TopicPartition) -> list[LeaderStart]:
        return [LeaderStart(t.leader_epoch, t.begin_ns, t.node, t.first_log_end) for t in self.leader_terms(place)]

    @cached_property
    def _log_ends(self) -> dict[TopicPartition, dict[int, list[End]]]:
        rows = [r for r in self.rows if r["kind"] == "state" and r["topic"] is not None]
        known = [r for r in rows if r["leader_epoch"] is not None and r["log_end_offset"] is not None]
        found: dict[TopicPartition, dict[int, list[End]]] = defaultdict(lambda: defaultdict(list))
        for row in sorted(known, key=lambda r: (r["incarnation"], r["sequence"])):
            end = row["log_end_offset"]
            found[where(row)][row["node"]].append(End(row["leader_epoch"], end, end))
        return found

    def given_up(self, place: TopicPartition, leader_epoch: int | None, offset: int | None, time_ns: int) -> bool:
        """Whether an unclean election of ``place`` gave up a record of ``leader_epoch`` at ``offset``.

        A record of unknown epoch (None) was there at ``time_ns``, so an election then or later may have given it up.
        See :mod:`checkers.views.unclean_elections`.
        """
        known = self.unclean_elections.get(place, [])
        if leader_epoch is None:
            return any(election.time_ns >= time_ns for election in known)
        return any(election.gave_up(leader_epoch, offset) for election in known)

    def thrown_back(self, place: TopicPartition, leader_epoch: int, offset: int, time_ns: int) -> bool:
        """Whether an unclean election of ``place`` until ``time_ns`` gave up a record.

        A sampled timeline does not show where the winner's log ended.
        """
        passed = None if self.sampled else offset
        known = self.unclean_elections.get(place, [])
        return any(election.time_ns <= time_ns and election.gave_up(leader_epoch, passed) for election in known)

    def cut_off(self, place: TopicPartition, offset: int, time_ns: int, leader_epoch: int | None = None) -> bool:
        """Whether an unclean election gave up everything from ``offset`` on that was written in ``leader_epoch``.

        Where the epoch is unknown (None): one at ``time_ns`` or later.
        """
        known = [
            election
            for election in self.unclean_elections.get(place, [])
            if election.log_end is None or election.log_end <= offset
        ]
        return any(x.time_ns >= time_ns if leader_epoch is None else x.leader_epoch > leader_epoch for x in known)

    @cached_property
    def final_leaders(self) -> dict[TopicPartition, Row]:
        """The row of the final leader, by partition."""
        leaders: dict[TopicPartition, Row] = {}
        for row in self.rows:
            if row["kind"] == "final" and row["role"] == "leader":
                known = leaders.get(where(row))
                if known is None or _seniority(row) > _seniority(known):
                    leaders[where(row)] = row
        return leaders


def _start(row: Row) -> Start:
    return Start(
        row["node"], row["incarnation"], row["sequence"], row["time_ns"], row["kind"], row["role"], row["leader_epoch"],
        row["log_start_offset"] or 0, detail(row).get("reason"),
    )  # fmt: skip


def _seniority(row: Row) -> tuple[int, int, int]:
    return row["leader_epoch"], row["time_ns"], row["node"]
