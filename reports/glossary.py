"""What the words of a verdict mean, in one sentence each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from harness.checker import Outcome, Verdict

LOST_WRITE: Final = "lost-write"
"""The kind of an acknowledged write that is gone."""


class Kind(NamedTuple):
    """A kind of anomaly: what it means, and whether it says that a record is gone that somebody relied on."""

    means: str
    gone: bool = False


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        LOST_WRITE: Kind("A send was acknowledged; the final read does not have its value at its offset.", gone=True),
        "vanished-read": Kind("A consumer was given a record that the final read no longer has there.", gone=True),
        "inconsistent-offsets": Kind("Acknowledgements and reads name two or more values for one offset."),
        "duplicate": Kind("One value, sent once and never retried, is at two or more offsets."),
        "nonmonotonic-poll": Kind("A consumer was given an offset that is not above the one before it."),
        "poll-skip": Kind("A consumer was given an offset beyond the next one, although the log has a record between."),
        "int-nonmonotonic-poll": Kind("One operation was given an offset that is not above the one before it."),
        "int-poll-skip": Kind("One operation was given two records and not one that lies between them."),
        "unseen": Kind("A send was acknowledged, nobody ever read it, and nothing proves that it is gone."),
        "precommitted-read": Kind("A transaction was given a record that it was itself about to write."),
        "torn-transaction": Kind("One record of a transaction was delivered, and another one is gone.", gone=True),
        "wrong-marker": Kind("A transaction that was committed is closed by an abort marker, or the other way round."),
        "open-transaction": Kind("No marker closes the records of a transaction."),
        "G1c": Kind("Transactions that read from, or wrote after, each other in a circle."),
        "G0": Kind("Transactions that wrote after each other in a circle."),
        "nonmonotonic-send": Kind("A process's record was stored before one whose acknowledgement it had waited for."),
        "int-nonmonotonic-send": Kind("One transaction's records are stored in another order than it sent them."),
        "G0-realtime": Kind("A record was stored before one that another process had been acknowledged before."),
        "G1c-realtime": Kind("A record was stored before one that somebody had been given before it was sent."),
        "lost-commit": Kind("A consumer group was told something else than its last commit."),
        "commit-beyond-end": Kind("A consumer group has committed an offset beyond the end of the log."),
        "corrupt-read": Kind("A consumer was given a record that is not what was sent to that partition: its hash, "
                             "key, headers or CreateTime is wrong."),
        "unwritten-read": Kind("A consumer was given a value that nobody ever sent to that partition."),
        "aborted-read": Kind("A consumer was given a value whose send was proven never to have happened."),
        "replica-divergence": Kind("Replicas hold different records at one offset that they all call committed, "
                                   "or two records of the same leader epoch."),
        "hw-regression": Kind("A leader's high watermark fell, or a leader began with a log that ended below what an "
                              "earlier leader had committed."),
        "two-leaders": Kind("Two brokers led one partition in the same leader epoch."),
        "unjustified-ack": Kind("A send with acks=all was acknowledged at an offset that no leader's high watermark "
                                "had passed."),
        "uncommitted-read": Kind("A consumer was given a record that no leader ever had committed."),
        "unjustified-advance": Kind("A leader committed records that a member of its ISR did not have."),
        "unjustified-join": Kind("A leader counted a replica as in sync that lacked what was committed."),
        "ack-below-min-isr": Kind("A leader took acks=all with fewer than min.insync.replicas in sync."),
        "advance-below-min-isr": Kind("A leader committed records with fewer than min.insync.replicas in sync."),
        "committed-cut": Kind("A replica cut committed records off its log; nothing is lost yet."),
        "epoch-regression": Kind("A broker or the controller fell back to an older epoch."),
        "epoch-disorder": Kind("A log holds a record of an older leader epoch behind one of a newer."),
        "epoch-cache-mismatch": Kind("The leader epochs that a replica has written down are not those of its log."),
        "illegal-isr": Kind("The controller decided on a leader or an ISR that may not be."),
        "metadata-divergence": Kind("Two said different things of one decision of the controller's."),
        "incomplete-leader": Kind("A leader began with something else in its log where records had been committed."),
        "incomplete-candidate": Kind("A replica may be elected that has cut what is committed off its log."),
        "misclassified-election": Kind("An election was recorded as clean, or unclean, and was not."),
        "altered-record": Kind("The final log holds another record than clients were given or told of at its offset."),
        "inconsistent-epochs": Kind("A poll named another leader epoch for a record than the log has it in."),
        "unfenced-read": Kind("A consumer was given records of a later leader epoch than its fetch had named."),
        "lineage-break": Kind("Two replicas share records, and differ before them."),
        "log-overlap": Kind("A log holds two records at one offset."),
        "damaged-record": Kind("A replica's disk holds a committed record whose bytes do not match their checksum."),
        "bounds-crossed": Kind("A running broker's log start, watermark and log end were not in this order."),
        "shrunk-log": Kind("A broker that was started again had less in its log than before, and lost no disk."),
        "uncommitted-deletion": Kind("A leader deleted records that were not committed."),
        "repeated-sequence": Kind("A log holds a sequence number of an idempotent producer twice."),
        "sequence-gap": Kind("A log lacks sequence numbers of an idempotent producer."),
        "zombie-append": Kind("A log holds a record of a producer's older epoch behind one of a newer."),
        "follower-hw-regression": Kind("A follower took back what its leader had told it was committed."),
        "laggard-in-sync": Kind("A leader kept a replica in the ISR that had stood still for too long."),
        "stalled-watermark": Kind("A leader committed nothing for too long, although its ISR had time to catch up."),
        "unjustified-refusal": Kind("A broker refused a valid send that nothing had given it a reason to refuse."),
        "wrong-deletion": Kind("DeleteRecords deleted something else than it was asked to, or nothing."),
        "unanswered-deletion": Kind("A leader refused a DeleteRecords, or did not answer it, for no reason."),
        "node-exit": Kind("A broker or a controller ended although nothing had ordered it to."),
        "stuck": Kind("All faults were healed, and a partition did not come to rest."),
    }
)  # fmt: skip
"""The kinds of the checkers that ship with seawall."""

VERDICTS: Final[Mapping[Verdict, str]] = MappingProxyType(
    {
        Verdict.VIOLATION: "The configuration promises that this never happens.",
        Verdict.EXPECTED: "The scenario predicts this for the protocol generation it ran.",
        Verdict.DOCUMENTED: "The configuration gave it away: unclean election, retention, "
        "or the lossy failure of every in-sync replica.",
        Verdict.WEAK: "The acknowledgement was of acks 0 or 1, which promise less.",
        Verdict.INDETERMINATE: "The evidence does not suffice.",
    }
)

OUTCOMES: Final[Mapping[Outcome, str]] = MappingProxyType(
    {
        Outcome.PASS: "nothing that the configuration forbids was seen, and nothing was predicted",
        Outcome.AS_PREDICTED: "exactly the predicted anomalies were observed",
        Outcome.VIOLATION: "an anomaly was observed that nothing predicted or documented",
        Outcome.NOT_REPRODUCED: "a predicted anomaly did not happen",
        Outcome.INCONCLUSIVE: "the evidence does not suffice to decide",
        Outcome.INVALID: "a fault was not proven, or the history is incomplete",
    }
)

TERMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "acknowledged (ok)": "The cluster told the client that the record is written as durably as its acks asked for.",
        "info": "The client cannot know (a timeout, a broken connection). That the record exists, or not, is no loss.",
        "fail": "Proven never to have happened: refused before anything was appended.",
        "high watermark (hw)": "The offset below which every in-sync replica holds the log. Exclusive: hw 20 commits "
        "offsets 0 to 19. Each broker has its own, and a follower's lags behind its leader's.",
        "log end offset": "The offset that the next record will get. Exclusive.",
        "leader epoch": "Counts the changes of a partition's leader; every record batch carries the epoch it was "
        "appended in.",
        "ISR": "The in-sync replicas: those an acknowledgement with acks=all waits for, and that may be elected.",
        "truncation": "A replica cuts its log back to an earlier end, usually when it starts to follow a new leader.",
        "proven": "A probe saw that the fault took effect. A run with an unproven fault proves nothing.",
    }
)


def meaning(kind: str) -> str:
    """What a kind of anomaly means."""
    known = KINDS.get(kind)
    return known.means if known else "A kind of a checker that this report does not know; see that checker."


def is_gone(kind: str) -> bool:
    """Whether a kind of anomaly says that a record is gone that somebody relied on."""
    return kind in KINDS and KINDS[kind].gone
