"""A consumer group that asks for its committed offset gets its last commit, which never lies beyond the partition.

* ``lost-commit``: a group is given another offset than the last one that it committed. Allowed is the offset of every
  commit that was not over before the last acknowledged one began: overlapping commits may be stored in any order, and
  one of unknown outcome at any time. One that was refused to a member of an earlier generation, or epoch, than the last
  one's is over: its client has given it up, and what it had sent before meets the same fence. A group without an
  acknowledged commit may also be given none; it is new to the run, so any other offset was never committed. Where the
  clients of a group commit by themselves (``auto_commit``), the history does not have their commits: what the group is
  given shows one, and only less than it was given before is another offset; such a group is not judged where another
  client commits for it, nor once one of its members has learned that it is out of range, for the next one begins at the
  beginning.
* ``commit-beyond-end``: an offset was committed, or given, that lies beyond the final leader's log end. The log was cut
  after a consumer had read that far, and the group will skip what is written there next.

Severity: ``VIOLATION``. A ``lost-commit`` is ``DOCUMENTED`` when every broker failed lossily at one time since the last
commit was acknowledged (see :mod:`checkers.views.lossy_failures`); and ``INDETERMINATE`` when the configuration permits
unclean elections and by then there had been a fault that may take a replica out, or such an election, for those of the
groups' own topic are not recorded; or when since that commit a fault had brokers cut off from one another, or stand
still, for a coordinator that does not know of its successor answers from what it knows. All three only when the group
is given none, or what it had committed before. ``INDETERMINATE`` is also a group that is given none, when
``offsets.retention.minutes`` have passed since the commit: no row shows when the group had its last member. A
``commit-beyond-end`` is ``DOCUMENTED`` when an unclean election after it gave up the record before it (its winner's log
ended there or earlier) and the configuration permits such elections.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from checkers.views.clock_steps import clock_steps_ms
from checkers.views.cuts import MAY_BE_DEPOSED, may_be_deposed
from checkers.views.fault_journal import FaultJournal
from checkers.views.frames import Frames
from checkers.views.group_operations import Whose, automatic, group_operations
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.row import Row, where
from checkers.views.timeline import Timeline
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.commit_grounds import commit_before, committed, returned, row_of
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
from harness.history.run_directory import Manifest
from harness.history.schema import FENCED
from harness.model import TopicPartition

LOST_COMMIT = AnomalyKind(
    name="lost-commit",
    invariants=("C12", "C13"),
    meaning="A consumer group was given another offset than its last commit.",
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

COMMIT_BEYOND_END = AnomalyKind(
    name="commit-beyond-end",
    invariants=("C11", "C12"),
    meaning="A consumer group has committed an offset beyond the end of the log.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset(),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.BEYOND_END,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.AFTER_KNOWN,
        with_cause=True,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.RECORD_GIVEN_UP),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (LOST_COMMIT, COMMIT_BEYOND_END)


_RETENTION = "offsets.retention.minutes"
_WEEK_MINUTES = 7 * 24 * 60
_COMMIT_MS = 10_000
"""How long a coordinator may take between it takes the time of a commit and the answer."""

_MAY_HAVE_EXPIRED = f"{_RETENTION} had passed since the commit, and no row shows when its group lost its last member"


class Commit(NamedTuple):
    """A commit that may have been stored.

    Attributes:
        ended: infinite while it may still be stored, unless it is of an earlier generation than a later commit.
        generation: of its member, if it was acknowledged, or refused because of it; None: not known.
    """

    offset: int
    begun: int
    ended: float
    acked: bool
    ended_ns: int
    generation: int | None

    def may_follow(self, last: Commit) -> bool:
        """Whether it may have been stored after ``last``, which was acknowledged."""
        if self.acked or self.generation is None or last.generation is None:
            return self.ended >= last.begun
        return self.generation >= last.generation


def find(history: History, timeline: Timeline, ends: PartitionEnds) -> Iterator[Finding]:
    """Reference: every answer of one run that is not the last commit, and every offset beyond the end."""
    commits: dict[tuple[str | None, TopicPartition], list[Commit]] = defaultdict(list)
    answers: list[tuple[int, Row]] = []
    for rows_of in group_operations(history):
        first, last = rows_of[0], rows_of[-1]
        if first["f"] == "committed":
            answers += [(first["index"], last)] if last["type"] == "ok" else []
        elif last["type"] != "fail":
            acked = last["type"] == "ok"
            ended = last["index"] if acked else math.inf
            commit = Commit(first["offset"], first["index"], ended, acked, last["time_ns"], _generation(first, last))
            commits[first["group"], where(first)].append(commit)
    by_themselves = automatic(history)
    for asked, row in answers:
        whose = (row["group"], where(row))
        if whose not in by_themselves:
            yield from _lost(history, row, asked, commits[whose])
    yield from _gone_back(history, by_themselves)
    yield from _beyond(history, timeline, ends)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    if finding.kind == "commit-beyond-end":
        return f"Offset {finding.offset} was committed, and the final leader's log ends at {finding.other_offset}."
    given = "no commit" if finding.offset is None else f"offset {finding.offset}"
    if finding.other_offset is None:
        return f"A group was given {given} as its commit, which it had never committed."
    return f"A group was given {given} as its commit, after offset {finding.other_offset} had been committed."


def doubt(finding: Finding, journal: FaultJournal, manifest: Manifest) -> str:
    """Why a commit may have expired, or a coordinator that was replaced may have told of an earlier one; empty: no.

    Such a coordinator answers from what it knows, without asking any replica, until it learns of its successor; so does
    Kafka's. That takes a fault that cuts brokers off from one another, or has one stand still, since the commit that is
    missing; and it tells nothing that had never been committed.
    """
    since_ns, until_ns = finding.since_ns, finding.time_ns
    if finding.kind != LOST_COMMIT.name or since_ns is None or until_ns is None:
        return ""
    made_ns = since_ns if finding.by_ns is None else finding.by_ns
    if finding.offset is None and _may_have_expired(made_ns, until_ns, journal, manifest):
        return _MAY_HAVE_EXPIRED
    return MAY_BE_DEPOSED if may_be_deposed(journal, since_ns, until_ns) else ""


def _may_have_expired(since_ns: int, until_ns: int, journal: FaultJournal, manifest: Manifest) -> bool:
    """Whether what was committed at ``since_ns`` may be kept no longer, by the clock of a broker."""
    settings = manifest.configuration.get("settings") or {}
    retention_ms = int(settings.get(_RETENTION, _WEEK_MINUTES)) * 60_000
    passed_ms = (until_ns - since_ns) / 1e6 + clock_steps_ms(journal.faults)
    return passed_ms + _COMMIT_MS >= retention_ms


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the commit, where a client reports it, and on the offset that the group was given."""
    if finding.kind == "commit-beyond-end":
        row = row_of(frames, finding)
        is_commit = row is not None and row["f"] == "commit"
        return attributed(committed(frames, finding, row) if is_commit else returned(frames, finding))
    has_commit = finding.other_offset is not None and finding.by_ns is None
    before = [committed(frames, finding, commit_before(frames, finding))] if has_commit else []
    return attributed(*before, returned(frames, finding))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The commit, what the group was given, and the cuts of the log."""
    if finding.kind == "lost-commit" and finding.other_offset is not None:
        yield from witnesses.commits(finding, finding.other_offset)
    if finding.offset is not None:
        yield from witnesses.commits(finding, finding.offset)
    if finding.kind == "commit-beyond-end":
        yield from witnesses.cuts(finding._replace(offset=(finding.offset or 1) - 1))


def _generation(begun: Row, ended: Row) -> int | None:
    """Of a commit that was acknowledged, or refused because of it and sent in no later one: that of its member."""
    generation, then = begun["generation"], ended["generation"]
    if generation is None or generation < 0:
        return None
    is_refused = ended["error"] in FENCED and then is not None and then <= generation
    return int(generation) if ended["type"] == "ok" or is_refused else None


def _lost(history: History, answer: Row, asked: int, commits: list[Commit]) -> Iterator[Finding]:
    before = [commit for commit in commits if commit.acked and commit.ended < asked]
    last = max(before, key=lambda commit: commit.begun, default=None)
    begun = [commit for commit in commits if commit.begun < answer["index"]]
    possible: set[int | None] = {commit.offset for commit in begun if last is None or commit.may_follow(last)}
    if answer["offset"] not in (possible if last else {None, *possible}):
        yield Finding(
            history.run, "lost-commit", *where(answer),
            offset=answer["offset"],
            row=answer["index"],
            time_ns=answer["time_ns"],
            process=answer["process"],
            other_offset=last.offset if last else None,
            since_ns=last.ended_ns if last and answer["offset"] in {None, *(c.offset for c in begun)} else None,
        )  # fmt: skip


def _gone_back(history: History, by_themselves: Mapping[Whose, int]) -> Iterator[Finding]:
    """What a group whose clients commit by themselves was given that is less than it had been given before."""
    told: dict[Whose, list[tuple[int, Row]]] = defaultdict(list)
    others: set[Whose] = set()
    for rows_of in group_operations(history) if by_themselves else ():
        first, last = rows_of[0], rows_of[-1]
        whose = Whose(first["group"], where(first))
        if first["f"] == "commit":
            others.add(whose)
        elif last["type"] == "ok":
            told[whose].append((first["index"], last))
    for whose, began_ns in by_themselves.items():
        if whose in others:
            continue
        end = min((row["index"] for row in history.operations if _is_reset(row, whose.group)), default=math.inf)
        for asked, row in told[whose]:
            known = (one for _, one in told[whose] if one["index"] < asked and one["offset"] is not None)
            before = max(known, key=lambda one: int(one["index"]), default=None)
            given = -1 if row["offset"] is None else row["offset"]
            if before is not None and given < before["offset"] and row["index"] < end:
                yield Finding(
                    history.run, "lost-commit", *whose.where,
                    offset=row["offset"],
                    row=row["index"],
                    time_ns=row["time_ns"],
                    process=row["process"],
                    other_offset=before["offset"],
                    since_ns=before["time_ns"],
                    by_ns=began_ns,
                )  # fmt: skip


def _is_reset(row: Row, group: str) -> bool:
    return bool(row["f"] == "out_of_range" and row["group"] == group)


def _beyond(history: History, timeline: Timeline, ends: PartitionEnds) -> Iterator[Finding]:
    commits = (one for group in group_operations(history) for one in group if one["type"] == "ok")
    seen: set[tuple[TopicPartition, int]] = set()
    for row in sorted(commits, key=lambda r: int(r["index"])):
        end = ends.by_partition.get(where(row))
        log_end = None if end is None else end.log_end_offset
        key = (where(row), int(row["offset"] or 0))
        if log_end is not None and key[1] > log_end and key not in seen:
            seen.add(key)
            yield Finding(
                history.run, "commit-beyond-end", *where(row),
                offset=row["offset"],
                excuse="unclean" if timeline.cut_off(where(row), key[1] - 1, row["time_ns"]) else None,
                row=row["index"],
                time_ns=row["time_ns"],
                process=row["process"],
                other_offset=log_end,
            )  # fmt: skip
