"""What a client does for a group, as the history has it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from harness.client_ports import CommittedOffset
from harness.client_tasks.group_process import GroupProcess
from harness.clock import SystemClock
from harness.history.kept_recorder import KeptRecorder
from harness.model import ProcessId, TopicPartition

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)


class Written:
    """A group's process, and what it has written down."""

    def __init__(self) -> None:
        self._recorder = KeptRecorder("r", SystemClock())
        numbers = map(ProcessId, itertools.count(5))
        self.process = GroupProcess(self._recorder, lambda: next(numbers), "g")

    def rows(self) -> list[dict[str, Any]]:
        self._recorder.flush()
        return self._recorder.rows

    def told(self) -> list[tuple[object, ...]]:
        names = ("process", "op", "f", "type", "partition", "offset", "error")
        return [tuple(row[name] for name in names) for row in self.rows()]


def test_a_commit_and_a_question_have_a_row_for_each_partition() -> None:
    written = Written()
    written.process.begin_commit({P: CommittedOffset(4, 2), Q: CommittedOffset(9)})
    written.process.end_commit(None)
    written.process.ask([Q, P])
    written.process.told({P: CommittedOffset(4, 2)})
    assert written.told() == [
        (5, 0, "commit", "invoke", 0, 4, None),
        (5, 0, "commit", "invoke", 1, 9, None),
        (5, 0, "commit", "ok", 0, 4, None),
        (5, 0, "commit", "ok", 1, 9, None),
        (5, 1, "committed", "invoke", 1, None, None),
        (5, 1, "committed", "invoke", 0, None, None),
        (5, 1, "committed", "ok", 1, None, None),
        (5, 1, "committed", "ok", 0, 4, None),
    ]
    assert {row["group"] for row in written.rows()} == {"g"}


def test_a_commit_of_a_member_says_in_which_generation_it_began_and_ended() -> None:
    written = Written()
    written.process.begin_commit({P: CommittedOffset(4)}, 7)
    written.process.end_commit(None, -1)
    assert [row["generation"] for row in written.rows()] == [7, -1]


def test_who_does_not_know_how_a_commit_ended_ends_with_it() -> None:
    written = Written()
    for error in ("_TIMED_OUT", None, None):
        written.process.begin_commit({P: CommittedOffset(4)})
        written.process.end_commit(error)
    ends = [(process, kind) for process, _, _, kind, *_ in written.told() if kind != "invoke"]
    assert ends == [(5, "info"), (6, "ok"), (6, "ok")]


@pytest.mark.parametrize(
    ("error", "kind"),
    [("INVALID_GROUP_ID", "fail"), ("NOT_COORDINATOR", "info"), ("COORDINATOR_LOAD_IN_PROGRESS", "info")],
)
def test_only_a_proof_makes_a_commit_one_that_never_happened(error: str, kind: str) -> None:
    written = Written()
    written.process.begin_commit({P: CommittedOffset(4)})
    written.process.end_commit(error)
    assert written.told()[1:] == [(5, 0, "commit", kind, 0, 4, error)]


def test_a_question_that_nobody_answers_fails_and_says_why() -> None:
    written = Written()
    written.process.ask([P])
    written.process.told("_TIMED_OUT")
    written.process.ask([P])
    written.process.told({})
    assert written.told()[1::2] == [
        (5, 0, "committed", "fail", 0, None, "_TIMED_OUT"),
        (5, 1, "committed", "ok", 0, None, None),
    ]
