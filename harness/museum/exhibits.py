"""The exhibits: which losses of real Kafka are on show, what is known of each, and which recorded runs went amiss.

What is known is written here once and for all. What was seen is not: a sentence about it belongs to an outcome, and the
page says it of those releases on which recorded runs came to that outcome, and of no others. What releases do otherwise
than predicted is in :mod:`harness.runner.known_differences`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.outcome import Word

Outcomes = Mapping[tuple[Word, ...], str]
"""By the words of an outcome, in their order, what they mean here: how a sentence goes on that begins "On 4.1.0"."""


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One exhibit.

    Attributes:
        title: its heading.
        issues: where the loss was written down.
        happened: what is known of it, in a paragraph.
        shows: by scenario that replays it, what its outcomes mean, the one that shows the flaw first.
    """

    title: str
    issues: str
    happened: str
    shows: Mapping[str, Outcomes]

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Those that replay it."""
        return tuple(self.shows)


_THERE_TWICE: Outcomes = {(Word.DUPLICATED,): "the record is there twice without idempotence."}
_THERE_ONCE: Outcomes = {(Word.SAFE,): "it is there once with idempotence."}

EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "Lost in two clean elections",
        "KIP-101 (KAFKA-1211), mended in 0.11.0",
        "Up to 0.10 a follower that turns to another leader cuts its log to its own high watermark, which lags a fetch "
        "behind. Two failovers in a row, both from the ISR, with acks=all and min.insync.replicas=2, and a record that "
        "was acknowledged and read is gone; the broker that still has it keeps a different log for good.",
        {
            "kip-101-double-failover": {
                (Word.LOST, Word.DIVERGED): "one record of each partition is lost, and the replicas differ.",
                (Word.SAFE,): "every record is kept.",
            }
        },
    ),
    Exhibit(
        "Cut at a restart, and elected",
        "KIP-101, scenario 1; unclean elections were on by default until 0.11 (KAFKA-4623)",
        "The follower of two replicas restarts, cuts an acknowledged record to its own high watermark, and leads "
        "before it has fetched it again. The variants in which the restart goes unnoticed do not come true on the "
        "releases that had the flaw: see what does not happen on real Kafka, below.",
        {
            "hw-truncation-noticed-unclean": {
                (Word.DOCUMENTED,): "the defaults of its time lose the record that the new leader had held before it "
                "restarted.",
                (Word.SAFE,): "the same settings keep it.",
            },
            "hw-truncation-noticed": {
                (Word.UNAVAILABLE,): "nobody may lead until the right one is back, where the restart was noticed.",
            },
        },
    ),
    Exhibit(
        "The full disks of 2017",
        "a post-mortem of September 2017, of a Kafka before 0.11",
        "The disk of one broker of two is full, and it halts; the other one goes on alone, is written to and read "
        "from, and then its disk is full, too. Who is started first decides: the one that died first leads with "
        "nothing, and the other one cuts its log to that.",
        {
            "full-disks-wrong-restart-order": {
                (Word.DOCUMENTED,): "with unclean elections everything is gone on both brokers, while the group's "
                "offsets stay at 3 and 7."
            },
            "regrown-after-the-incident": {
                (Word.SKIPPED, Word.DOCUMENTED): "the group goes on, when the logs have grown past its offsets again, "
                "in the midst of records that it was never given."
            },
            "full-disks-no-unclean-election": {
                (Word.UNAVAILABLE,): "nobody leads without unclean elections until the right one is back."
            },
            "full-disks-last-dead-first": {(Word.SAFE,): "everything is kept when the right one is started first."},
        },
    ),
    Exhibit(
        "Unequal logs after unclean elections",
        "KIP-279 (KAFKA-6361) in 2.0.0, KAFKA-7415 in 2.0.1",
        "Two brokers that are never up together write by turns, each elected uncleanly. Their logs have no leader "
        "epoch in common, and from 0.11 to 2.0.0 the answer to where an epoch ends does not say so: a record stays "
        "that the other one does not have. With one record in common KIP-279 is enough. What unclean elections give up "
        "is documented; that the replicas differ afterwards is not.",
        {
            "unclean-flip-flop": {
                (Word.DIVERGED, Word.DOCUMENTED): "the replicas differ in the end.",
                (Word.DOCUMENTED,): "they agree.",
            },
            "unclean-flip-flop-common-prefix": {
                (Word.DIVERGED, Word.DOCUMENTED): "they differ even with a record in common.",
                (Word.DOCUMENTED,): "they agree with a record in common.",
            },
        },
    ),
    Exhibit(
        "A fast failover",
        "KAFKA-6361, mended by KIP-279 in 2.0.0",
        "A leader dies, another one writes to the same offsets, and the first one leads again before it has cut "
        "anything. Up to 0.11 the follower cannot tell where the logs part.",
        {
            "fast-failover-shorter-log": {
                (Word.DIVERGED, Word.STUCK, Word.DOCUMENTED): "the follower asks for an offset within a batch of its "
                "leader's for ever.",
                (Word.DOCUMENTED,): "it cuts its log and follows.",
            },
            "fast-failover-equal-log": {
                (Word.DIVERGED, Word.DOCUMENTED): "it cuts nothing of an equally long log, and the replicas differ.",
                (Word.DOCUMENTED,): "it cuts an equally long log, too.",
            },
            "fast-failover-longer-log": {(Word.DOCUMENTED,): "it cuts a longer log, too."},
        },
    ),
    Exhibit(
        "The last replica standing",
        "KIP-966, eligible leader replicas: 4.0 optional, 4.1 by default",
        "Two of three replicas leave the ISR in good order, and the third loses power with a page cache that was never "
        "flushed. It is the only member of the ISR, so that it is elected, cleanly, without what was acknowledged by "
        "all three.",
        {
            "last-replica-loses-page-cache": {
                (Word.LOST,): "the record is lost in spite of acks=all and min.insync.replicas=2.",
                (Word.SAFE,): "one that has it is elected.",
            },
            "last-replica-loses-page-cache-min-isr-1": {
                (Word.LOST, Word.DOCUMENTED): "it is lost with min.insync.replicas=1, in spite of eligible leader "
                "replicas; what the last replica acknowledged alone is gone, too, and that is documented."
            },
        },
    ),
    Exhibit(
        "Eligible replicas, forgotten",
        "found here; apache/kafka#20716, mended in 4.3.0",
        "The follower of two shuts down, and is eligible to lead. The leader comes back with an empty disk, and tells "
        "the controller in which log directory its replica is now; from 4.1.0 to 4.2.1 the controller writes an empty "
        "list of eligible replicas beside that. The follower comes back with every record, and follows the empty one: "
        "[what happens, and what to do](elr-forgotten.md).",
        {
            "directory-assignment-forgets-elr": {
                (Word.LOST,): "everything is lost, with acks=all, min.insync.replicas=2 and clean elections only."
            },
            "directory-assignment-keeps-elr": {
                (Word.LOST,): "it is lost, too: there are no eligible replicas, and the last one in sync leads.",
                (Word.SAFE,): "the one with the records leads.",
            },
        },
    ),
    Exhibit(
        "Below the minimum",
        "KAFKA-15583, 3.7",
        "What one replica alone has taken with acks=1, while fewer than min.insync.replicas are in sync, was shown to "
        "consumers until 3.7 let the high watermark stand still.",
        {
            "invisible-below-min-isr": {
                (Word.LOST,): "the record is shown, and is gone.",
                (Word.WEAK,): "it is gone as acks=1 allows, and nobody was shown it.",
            }
        },
    ),
    Exhibit(
        "A laggard is elected",
        "Kafka's documentation of unclean.leader.election.enable",
        "Everybody in sync dies, and a replica that lags leads and writes other records at offsets that had been "
        "acknowledged. That is documented. That the others come back and keep theirs is not.",
        {
            "unclean-election-of-a-laggard": {
                (Word.DIVERGED, Word.DOCUMENTED): "the replicas differ for good.",
                (Word.DOCUMENTED,): "what the configuration gave up is lost, and they agree.",
            }
        },
    ),
    Exhibit(
        "An error is not a no",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND; KIP-98",
        "A write is refused after it was appended, is committed later, and a producer without idempotence sends it "
        "again.",
        {
            "refused-after-append-and-retried": _THERE_TWICE,
            "refused-after-append-and-retried-idempotent": _THERE_ONCE,
        },
    ),
    Exhibit(
        "An acknowledgement is lost",
        "KIP-98",
        "A record is appended and committed, and its acknowledgement does not arrive; the producer sends it again.",
        {"lost-ack-and-retried": _THERE_TWICE, "lost-ack-and-retried-idempotent": _THERE_ONCE},
    ),
    Exhibit(
        "The first release of a protocol",
        "KAFKA-13141, mended in 2.8.1; KAFKA-14704, mended in 3.4.1 and 3.5.0",
        "2.8.0 was the first release whose followers ask where logs part by the fetch itself. Its leaders took a fetch "
        "that was told of a divergence for an acknowledgement; and a follower that was told to cut its log took the "
        "watermark of that answer first, so that it showed what it was about to cut.",
        {
            "diverging-fetch-acknowledges": {(Word.LOST,): "an acknowledged record is lost."},
            "diverging-fetch-is-no-acknowledgement": {
                (Word.WEAK,): "all cut their logs to their watermarks, so that the same schedule loses what its leader "
                "had acknowledged alone.",
                (Word.SAFE,): "the same schedule loses nothing.",
            },
            "diverging-watermark-exposes-tail": {
                (Word.SAFE,): "consumers that read from leaders notice nothing of the watermark."
            },
        },
    ),
    Exhibit(
        "Transactions without their leader",
        "KIP-98; KIP-890 in 4.0",
        "A transaction begins while its leader, and perhaps its coordinator, is dead; others before and after it are "
        "aborted. The built-in brokers have no transactions: what is predicted is what Kafka promises.",
        {
            "transactions-outlive-their-leader": {
                (Word.SAFE,): "nothing is lost: what was committed is there once and in order, and who reads committed "
                "records is given nothing of what was aborted."
            }
        },
    ),
    Exhibit(
        "The end of the wrong transaction",
        "KAFKA-17754, found by Jepsen in 2024; KIP-890 in 4.0 for clients that know it",
        "A request to end a transaction is late, and its client repeats it in another connection, where it is "
        "answered. When the first one arrives, the next transaction of that producer has begun, and it ends that one: "
        "nothing tells them apart. No broker fails. The client is librdkafka; brokers of 4.x tell transactions apart "
        "(transaction.version=2), but only those of clients that know KIP-890, as this one does not: "
        "[what happens, and what to do](late-end.md).",
        {
            "late-abort-ends-the-next-transaction": {
                (Word.LOST,): "half of a transaction is gone whose commit was acknowledged."
            },
            "late-commit-ends-the-next-transaction": {
                (Word.DIRTY,): "who reads committed records is given half of a transaction that was aborted."
            },
        },
    ),
    Exhibit(
        "Two requests in flight",
        "KAFKA-3197; max.in.flight.requests.per.connection",
        "Of two requests in flight the first is refused and sent again when the second one has been taken.",
        {
            "two-in-flight-reordered": {(Word.REORDERED,): "the order is turned round without idempotence."},
            "two-in-flight-idempotent": {(Word.SAFE,): "the order is kept with idempotence."},
        },
    ),
)
"""In the order in which they are shown."""

_NOT_WRITTEN_DOWN = (
    "Kafka writes down where its logs start half a minute after a broker's start for the first time, and this run was "
    "over before. The harness took what had been deleted and was still on the disk for a part of the log."
)
_ASKED_ONCE = (
    "The harness gave a broker one second for its answer, on a machine that was busy with other work, and took it for "
    "dead when it was late; it is asked for longer now."
)
_NO_EPOCH_YET = (
    "A broker that had just started was looked at while it learned its first leader epoch. The harness put together "
    "what it said before and after, so that a leader without an epoch had a watermark; it asks once more now."
)

BUSY: Mapping[str, str] = {
    "epoch-without-records/20261124T142754-0": (
        "The machine was busy with other work, so that broker 2 had not yet asked for more when its questions were "
        "held. A later try came to its end."
    )
} | dict.fromkeys(
    (
        "directory-assignment-forgets-elr/20261122T103233-1",
        "directory-assignment-forgets-elr/20261122T104442-1",
        "directory-assignment-keeps-elr/20261122T105603-2",
        "fast-failover-shorter-log/20261122T103453-1",
        "leaders-clock-jump-expires/20261122T204304-1",
        "lost-ack-and-retried/20261122T203533-1",
        "regrown-after-the-incident/20261122T101456-1",
        "regrown-and-found-out/20261122T101449-1",
        "retried-isr-change/20261122T100325-1",
        "retried-isr-change/20261123T010035-1",
        "sole-isr-member-dies-unclean/20261122T103901-1",
        "two-in-flight-idempotent/20261122T101146-1",
        "unclean-flip-flop-common-prefix/20261122T142855-1",
        "unclean-flip-flop/20261122T145149-1",
        "watermark-regress-after-clean-failover/20261122T200518-1",
        "words-of-a-dead-controller/20261122T100428-1",
    ),
    "The machine was busy with other work, so that processes stood still for seconds: sessions ended that nobody had "
    "meant to end, or nodes did not come up in time. A later try came to its end.",
)
"""By its id, what broke a run off that was nobody's fault."""

MISTAKEN: Mapping[str, str] = {
    "last-replica-loses-page-cache/20261122T003309-1": (
        "The harness itself was changed while it ran, and read no log; the next tries were made from a copy."
    ),
    "crash-while-loading/20261122T083647-1": (
        "The harness took a broker that it had killed while it loaded its logs for one that had not died; it was as "
        "predicted when that was mended."
    ),
    "bit-rot-in-the-leaders-log/20261122T104806-1": _ASKED_ONCE,
    "clock-jump-shrinks-the-isr/20261122T105350-1": _ASKED_ONCE,
    "corrupt-tail-follower/20261122T104515-1": _ASKED_ONCE,
    "hw-truncation-noticed/20261122T103256-1": _ASKED_ONCE,
    "last-replica-loses-page-cache/20261122T104012-1": _ASKED_ONCE,
    "retention-overtakes-a-follower/20261122T105204-1": _ASKED_ONCE,
    "unclean-flip-flop-common-prefix/20261122T103432-1": _ASKED_ONCE,
    "spoofed-follower-fetch/20261122T104328-1": (
        "The harness asked in a version of Fetch that 0.10 does not know, and the broker hung up; it asks which it "
        "knows now."
    ),
    "fast-failover-shorter-log/20261122T150529-1": _NO_EPOCH_YET,
    "unclean-flip-flop-common-prefix/20261122T150643-2": _NO_EPOCH_YET,
    "deleted-records/20261122T083952-1": _NOT_WRITTEN_DOWN,
    "deleted-records/20261122T101810-1": _NOT_WRITTEN_DOWN,
    "followers-clock-jump-expires/20261122T084155-1": _NOT_WRITTEN_DOWN,
    "followers-clock-jump-expires/20261122T102537-1": _NOT_WRITTEN_DOWN,
    "leaders-clock-jump-expires/20261122T084242-1": _NOT_WRITTEN_DOWN,
    "leaders-clock-jump-expires/20261122T102556-1": _NOT_WRITTEN_DOWN,
}
"""By its id, what the harness did wrong in a run, which so proves nothing of Kafka; it has been mended since."""
