"""The definition of a kind of anomaly: its name, its meaning, the evidence it relies on, and what may excuse it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from harness.outcome import Word

LOST_WRITE = "lost-write"
"""The kind of an acknowledged write that is gone."""


class Needs(Enum):
    """The evidence that must be complete for a finding of the kind; where it is not, the finding is INDETERMINATE.

    ``HISTORY``, ``TIMELINE``, ``REPLICA_LOGS`` and ``FAULTS`` are tables of a run. List a table if the rule relies on a
    row being absent or late; a gap could hide that row. Rows that are there are cited and need no entry.
    """

    HISTORY = "history"
    TIMELINE = "timeline"
    REPLICA_LOGS = "replica_logs"
    FAULTS = "faults"
    VALUES = "values"
    """That no value is sent twice: the rule needs to know which send, or transaction, a value is of."""
    ENDS = "ends"
    """That each send ends with the value with which it began: the rule uses the rows that end sends."""
    TIMES = "times"
    """That rows do not go back in time: the rule compares the times of a client's and a broker's rows."""
    ISR = "isr"
    """That leaders and controller name the ISR."""


class CauseAt(Enum):
    """Where the finding lies that a finding follows from, in the same partition."""

    OFFSET = "at its offset"
    SAME_RECORD = "at its offset, about the same value"
    RANGE = "at its offset, or up to its end, which is excluded"
    STEP_BACK = "between its offset and the other one"
    EARLIER_RECORD = "at the other record's offset, about the other record's value"
    BEYOND_END = "from the other offset on, below its own"


class Retention(Enum):
    """Which deletion excuses a finding, where the configuration permits that records are deleted."""

    NEVER = "none"
    OF_A_SENT_RECORD = "that the last leader's log starts behind a record because of a deletion since its send"
    BEFORE_THE_POLL = "that the log had started behind a record by the time of a poll"
    AT_ANY_TIME = "that some log starts behind the offset"


class LossyFailure(Enum):
    """When all copies must have lost something, by which failures, for that to excuse a finding."""

    NEVER = "at no time"
    AFTER_KNOWN = "after the record was acknowledged or delivered"
    AFTER_BEGUN = "after the transaction had begun, or if that is not known, after the record was acknowledged"
    BEFORE_SEEN = "before the finding was seen"
    BETWEEN_POLLS = "between the poll before and the one that shows it"
    BEFORE_READ = "between the send and the read"
    BEFORE_MARKER = "between the send and the marker"
    BETWEEN_COMMITS = "between a group's commit, or generation, and what contradicts it, on all brokers"
    AFTER_POLL_BEGUN = "after the poll had begun that delivered the record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Excuses:
    """What may excuse a finding. Where the evidence of an excuse may be missing, the finding is INDETERMINATE.

    Attributes:
        unclean_election: whether an unclean election does, which the timeline shows.
        retention: which deletion does, which the timeline shows.
        fault: whether a fault does, in every configuration.
        lossy_failure: when lossy failures of all copies do.
        with_cause: whether it is excused if every finding that it follows from is.
        own_topic: the setting with the number of copies of Kafka's internal topic that may explain it.
        while_leading: whether a leader that leads on can bring it about if its senders did not wait for the ISR.
    """

    unclean_election: bool
    retention: Retention
    fault: bool
    lossy_failure: LossyFailure
    with_cause: bool
    own_topic: str | None
    while_leading: bool


NOTHING = Excuses(
    unclean_election=False,
    retention=Retention.NEVER,
    fault=False,
    lossy_failure=LossyFailure.NEVER,
    with_cause=False,
    own_topic=None,
    while_leading=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """The first generation of the protocol that rules a kind out; in an older one it is DOCUMENTED.

    Attributes:
        why_not_before: what older generations do that brings it about.
    """

    generation: str
    why_not_before: str


class Found(Enum):
    """Which anomalies of a kind a sampled timeline shows."""

    ALL = "all of them"
    SOME = "some: no sample was taken in time, or a real controller does not write down all it did"
    SOME_WITH_EVERY_LEADER = "some, where every leader of the partition was seen to lead"
    NONE = "none: it takes what happened between two looks"


class Unseen(Enum):
    """What may have happened between two looks at the brokers that would excuse a finding."""

    NOTHING = "nothing"
    DELETION = "the log's start moved past a record that is there again in the end"
    RECORD_GIVEN_UP = "an unclean election gave up a record of an older epoch"
    RECORD_GONE = "either of these two"
    WATERMARK_GIVEN_UP = "an unclean election gave up what a watermark had passed"
    CUT_GIVEN_UP = "an unclean election gave up what a replica cut"
    REPLICA_BEHIND = "an unclean election of which a replica has not heard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """How much of a kind a sampled timeline shows.

    Attributes:
        found: which anomalies it shows.
        unseen: what it may not show that would excuse one.
    """

    found: Found
    unseen: Unseen


@dataclass(frozen=True, slots=True, kw_only=True)
class InScenarios:
    """How a kind stands to the words in which a scenario predicts its outcome.

    Attributes:
        word: the word that it shows; None: none.
        predicted_by_word: whether the word alone predicts it, wherever it is found; if not, ``anomalies`` must name it.
        after_any_loss: whether a lost record of its partition explains it, at whichever offset: leaders assign the
            lost offsets again, below acknowledged ones.
    """

    word: Word | None
    predicted_by_word: bool
    after_any_loss: bool


NO_WORD = InScenarios(word=None, predicted_by_word=False, after_any_loss=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomalyKind:
    """Everything about a kind of anomaly except the rule that finds it.

    Attributes:
        name: as in ``verdict.json``.
        invariants: those of docs/anomalies.md that it is a breach of, by their ids; of a plugin's, none.
        meaning: for people, a sentence.
        shows_loss: whether it shows that a delivered or acknowledged record is gone.
        shown_by_clients: whether what clients record can show one, without a look at brokers.
        shown_by_metadata: whether what the cluster tells clients of its leaders and watermarks can, where they do not.
        unless_deleting: whether that takes a run without DeleteRecords and retention.
        shown_by_logs: whether replica logs can show one, with what the cluster tells clients, where that alone cannot.
        relies_on: the evidence that must be whole.
        follows_from: the kinds of the same partition that are the same loss seen from another side, and come first.
        cause_at: where those lie.
        excuses: what may excuse it.
        since: from which generation on it is promised not to happen; None: in every one.
        sampled: how much of it a sampled timeline shows.
        in_scenarios: how it stands to the words of predicted outcomes.
        permitted_by: the guarantee in ``run.json`` that, where it is true, permits it; empty: none does.
    """

    name: str
    invariants: tuple[str, ...]
    meaning: str
    shows_loss: bool
    shown_by_clients: bool
    relies_on: frozenset[Needs]
    follows_from: tuple[str, ...]
    cause_at: CauseAt
    excuses: Excuses
    since: Since | None
    sampled: Sampled
    in_scenarios: InScenarios
    permitted_by: str
    shown_by_metadata: bool = False
    unless_deleting: bool = False
    shown_by_logs: bool = False


Kinds = Mapping[str, AnomalyKind]
"""Kinds by name."""


def predicted(kinds: Kinds, words: Iterable[str], named: Iterable[str]) -> Iterator[str]:
    """The kinds that the words of a predicted outcome mean, wherever they are found.

    Args:
        kinds: all of them.
        words: those of the outcome.
        named: kinds that the scenario predicts one by one; of what has the same word, nothing else is predicted.
    """
    exact = {kinds[name].in_scenarios.word for name in named if name in kinds}
    meant: dict[str | None, str] = {
        kind.in_scenarios.word: name for name, kind in kinds.items() if kind.in_scenarios.predicted_by_word
    }
    return (meant[word] for word in words if word in meant and word not in exact)
