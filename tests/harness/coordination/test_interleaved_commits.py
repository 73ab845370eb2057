"""Plain commits, and those of transactions, in any order: a coordinator and the next one answer the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from harness.coordination.group_commits import Committer
from harness.coordination.offsets import CommittedOffset
from harness.coordination.ports import LogRecord, ProducerIdentity, Stored
from harness.coordination.records import decoded
from tests.harness.coordination.groups_alone import WHERE, GroupsAlone

FIRST, SECOND = ProducerIdentity(100, 4), ProducerIdentity(101, 0)
OUTSIDE = Committer("", None, -1)
PLAIN = None


class Entry(NamedTuple):
    """A record of the log, or the marker of a transaction."""

    record: LogRecord | None
    producer_id: int | None = None
    commits: bool = False


class Journal(GroupsAlone):
    """Groups whose log is written at once, while what is in it takes effect when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.holds_stores = True
        self.entries: list[Entry] = []
        self._producer_id: int | None = None

    def store(self, records: Sequence[LogRecord], stored: Stored) -> None:
        self.entries += [Entry(one, self._producer_id) for one in records]
        super().store(records, stored)

    def store_in_transaction(self, records: Sequence[LogRecord], producer: ProducerIdentity, stored: Stored) -> None:
        self._producer_id = producer.producer_id
        super().store_in_transaction(records, producer, stored)
        self._producer_id = None

    def commits(self, producer: ProducerIdentity | None, offset: int) -> None:
        offsets, commits = {WHERE: CommittedOffset(offset, 3, "", 0)}, self.groups.commits
        if producer is None:
            commits.commit("g", OUTSIDE, offsets, lambda error: None)
        else:
            commits.commit_in_transaction("g", OUTSIDE, producer, offsets, lambda error: None)

    def ends(self, producer: ProducerIdentity, *, commits: bool = True) -> None:
        """The marker is in the log, and so everything before it is stored."""
        self.entries.append(Entry(None, producer.producer_id, commits))
        self.settle()
        self.groups.commits.transaction_ended(producer.producer_id, commits=commits)

    def settle(self) -> None:
        while self.storing:
            self.store_next()

    def compacted(self) -> list[Entry]:
        """The log without what later commits have replaced, and without aborted transactions."""
        kept: list[Entry] = []
        for number, one in enumerate(self.entries):
            ends = (e for e in self.entries[number:] if e.record is None and e.producer_id == one.producer_id)
            end = next(ends, None)
            if one.record is None or one.producer_id is None or end is None or end.commits:
                kept.append(one)
        last = max(n for n, one in enumerate(kept) if one.record is not None)
        return [one for n, one in enumerate(kept) if n >= last or one.record is None]


def reloaded(entries: Sequence[Entry]) -> int:
    following = GroupsAlone()
    for record, producer_id, commits in entries:
        if record is not None:
            said = decoded(*record)
            assert said is not None
            following.groups.replay(*said, producer_id)
        elif producer_id is not None:
            following.groups.commits.transaction_ended(producer_id, commits=commits)
    return following.committed()


def test_a_transaction_replaces_a_commit_that_is_later_in_the_log() -> None:
    journal = Journal()
    journal.commits(FIRST, 50)
    journal.commits(PLAIN, 60)
    journal.ends(FIRST)
    assert (journal.committed(), reloaded(journal.entries), reloaded(journal.compacted())) == (60, 60, 60)


def test_a_plain_commit_that_is_stored_late_replaces_one_that_is_later_in_the_log() -> None:
    journal = Journal()
    journal.commits(PLAIN, 60)
    journal.commits(FIRST, 50)
    journal.groups.commits.transaction_ended(FIRST.producer_id, commits=True)
    journal.entries.append(Entry(None, FIRST.producer_id, commits=True))
    journal.settle()
    assert (journal.committed(), reloaded(journal.entries)) == (50, 50)


@pytest.mark.parametrize(("commits", "offset"), [(True, 60), (False, 50)])
def test_the_transaction_that_ends_last_counts_whose_commit_is_the_earlier_one(commits: bool, offset: int) -> None:
    journal = Journal()
    journal.commits(FIRST, 50)
    journal.commits(SECOND, 60)
    journal.ends(SECOND, commits=commits)
    journal.ends(FIRST)
    answers = (journal.committed(), reloaded(journal.entries), reloaded(journal.compacted()))
    assert answers == (offset, offset, offset)


@pytest.mark.parametrize("seed", range(60))
def test_the_next_coordinator_answers_otherwise_after_commits_in_any_order(seed: int) -> None:
    rng, journal = random.Random(seed), Journal()
    journal.commits(PLAIN, 0)
    for offset in range(1, 25):
        match rng.randrange(5):
            case 0 | 1:
                journal.commits(rng.choice([FIRST, SECOND]), offset)
            case 2:
                journal.commits(PLAIN, offset)
            case 3:
                journal.ends(rng.choice([FIRST, SECOND]), commits=rng.random() < 0.7)
            case _ if journal.storing:
                journal.store_next()
    for producer in (FIRST, SECOND):
        journal.ends(producer)
    assert journal.committed() == reloaded(journal.entries) == reloaded(journal.compacted())
