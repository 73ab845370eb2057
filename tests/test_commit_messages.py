"""The check of commit messages finds what is wrong with one, and leaves the others alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import commit_messages
from tests.commit_messages import complaints

BODY = "\n\nA deposed leader appended what the new one had cut.\n"


@pytest.mark.parametrize(
    "subject",
    [
        "replication: fence stale fetches",
        "checkers: pass what a session permits",
        "harness/broker: discuss nothing with strangers",
        "docs: seed the examples",
        "x: " + "a" * 69,
    ],
)
def test_a_message_that_is_as_it_should_be_has_no_complaint(subject: str) -> None:
    assert complaints(subject + BODY) == []


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("replication: " + "fence " * 10 + "all" + BODY, "The subject has 76 characters"),
        ("Fence stale fetches" + BODY, "does not begin with the part"),
        ("replication: fenced stale fetches" + BODY, "begins with 'fenced'"),
        ("replication: fencing of fetches" + BODY, "begins with 'fencing'"),
        ("replication: fences stale fetches" + BODY, "begins with 'fences'"),
        ("replication: the leader fences stale fetches" + BODY, "begins with 'the'"),
        ("replication: fence stale fetches." + BODY, "full stop"),
        ("replication: fence stale fetches\n", "A body that says why is missing."),
        ("replication: fence stale fetches\nBecause.", "An empty line"),
    ],
)
def test_a_message_that_is_not_gets_one_sentence(message: str, says: str) -> None:
    (complaint,) = complaints(message)
    assert says in complaint


def test_a_merge_that_a_forge_makes_to_test_a_proposal_has_no_complaint() -> None:
    assert complaints(f"Merge {'4a' * 20} into {'b5' * 20}\n") == []


def test_merges_are_checked_as_other_commits_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def git(*words: str) -> str:
        names = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        command = ("git", *names, "-C", str(tmp_path), *words)
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(subject: str) -> None:
        git("commit", "--quiet", "--allow-empty", "-m", subject + BODY)

    git("init", "--quiet", "--initial-branch=main")
    commit("first: begin")
    first = git("rev-parse", "HEAD")
    git("checkout", "--quiet", "-b", "side")
    commit("side: go")
    git("checkout", "--quiet", "main")
    commit("main: go")
    git("merge", "--quiet", "--no-ff", "-m", "Merge of two lists", "side")
    monkeypatch.setattr(commit_messages, "ROOT", tmp_path)
    assert commit_messages.main([first]) == 1
    said = capsys.readouterr().out
    assert said.count("'Merge of two lists': ") == 2
    assert "The subject does not begin with the part" in said
    assert "A body that says why is missing." in said
