"""The files from which an audit goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.audit.journal import Journal
from harness.audit.ledger import CanarySend, Ledger
from harness.errors import UsageError
from harness.history.sends import Answer
from harness.model import ProcessId


def written(directory: Path) -> Journal:
    journal = Journal(directory)
    with journal.held():
        for window in (1, 2):
            journal.open_window(window)
            for value in (10 * window, 10 * window + 1):
                send = CanarySend(window, value, 0, ProcessId(0), value, value)
                journal.begun(send)
                if value != 21:
                    send.end(Answer("ok", value), value + 1)
                    journal.ended(send)
    return journal


def test_every_send_is_known_again_and_one_under_way_has_an_unknown_outcome(tmp_path: Path) -> None:
    ledger, latest_ns = written(tmp_path).ledger(())
    assert [(one.window, one.value, one.kind) for one in ledger.sends.values()] == [
        (1, 10, "ok"),
        (1, 11, "ok"),
        (2, 20, "ok"),
        (2, 21, "info"),
    ]
    assert latest_ns == 21


def test_a_line_that_was_not_written_to_its_end_is_left_out(tmp_path: Path) -> None:
    journal = written(tmp_path)
    with (tmp_path / "sends/000002.jsonl").open("a") as file:
        file.write('["b",22,0,')
    assert len(journal.ledger(())[0].sends) == 4


def test_what_was_judged_for_good_is_not_carried_after_a_restart_once_its_window_has_a_line(tmp_path: Path) -> None:
    journal = written(tmp_path)
    with journal.held():
        journal.open_window(3)
        journal.judged([journal.ledger(())[0].sends[11]], 2)
    assert list(Journal(tmp_path).ledger({1, 2})[0].sends) == [10, 20, 21]
    assert list(Journal(tmp_path).ledger({1})[0].sends) == [10, 11, 20, 21]


def test_files_of_windows_of_which_nothing_is_carried_are_removed_but_for_the_newest(tmp_path: Path) -> None:
    journal = written(tmp_path)
    with journal.held():
        journal.open_window(3)
    journal.forget(Ledger())
    assert journal.windows() == [2, 3]


def test_two_processes_cannot_run_the_same_audit(tmp_path: Path) -> None:
    with Journal(tmp_path).held(), pytest.raises(UsageError, match="another process"), Journal(tmp_path).held():
        pass
