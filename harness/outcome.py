"""Defines the words for the outcome of a scenario on one generation, predicted or observed.

Each word has its own evidence, see :mod:`harness.runner.observation`. ``safe`` means that none of the others applies.
"""

from __future__ import annotations

from enum import StrEnum


class Word(StrEnum):
    """A word of an outcome; the letters of the matrix are in :data:`LETTERS`."""

    LOST = "lost"
    """An acknowledged record that the configuration promised to keep is not there any more."""
    DIVERGED = "diverged"
    """Two replicas hold different records at an offset that both take for committed, or below which they must agree."""
    STUCK = "stuck"
    """The healed cluster did not get whole again: a replica cannot catch up, or a transaction stays open."""
    EXITED = "exited"
    """A broker has exited as its protocol requires."""
    UNAVAILABLE = "unavailable"
    """The schedule has shown that a partition had no leader, or there was none when everything was healed."""
    DUPLICATED = "duplicated"
    """One value is in the log twice."""
    REORDERED = "reordered"
    """Two records of one producer are in the log in another order than they were sent in."""
    DIRTY = "dirty"
    """A read_committed consumer was given a record of an aborted transaction."""
    SKIPPED = "skipped"
    """A consumer group has gone past a record that none of its members was ever given."""
    DOCUMENTED = "documented"
    """An acknowledged record is gone, and the configuration permits that."""
    WEAK = "weak"
    """A record acknowledged with acks 0 or 1 is gone."""
    SAFE = "safe"
    """None of the above."""


LETTERS = {
    Word.LOST: "L",
    Word.DIVERGED: "D",
    Word.STUCK: "K",
    Word.EXITED: "X",
    Word.UNAVAILABLE: "U",
    Word.DUPLICATED: "dup",
    Word.REORDERED: "ord",
    Word.DIRTY: "G1a",
    Word.SKIPPED: "skip",
    Word.DOCUMENTED: "doc",
    Word.WEAK: "w",
    Word.SAFE: "S",
}
"""How the matrix abbreviates them."""
