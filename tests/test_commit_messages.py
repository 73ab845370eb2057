"""The check of commit messages finds what is wrong with one, and leaves the others alone."""

from __future__ import annotations

import pytest

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
