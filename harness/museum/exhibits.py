"""The losses of real Kafka that ``docs/museum.md`` shows, what is known of each, and which recorded runs went wrong.

A sentence about what was seen belongs to an outcome: the page has it for those releases on which recorded runs came to
that outcome, and of no others. What releases do otherwise than predicted is in
:mod:`harness.runner.known_differences`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.outcome import Word

Outcomes = Mapping[tuple[Word, ...], str]
"""By the words of an outcome, in their order, what they mean here: a sentence for a cell of the table."""


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


_THERE_TWICE: Outcomes = {(Word.DUPLICATED,): "without idempotence the log has the record twice."}
_THERE_ONCE: Outcomes = {(Word.SAFE,): "with idempotence it has the record once."}

EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "Lost in two clean elections",
        "KIP-101 (KAFKA-1211), fixed in 0.11.0",
        "Up to 0.10 a follower of a new leader truncates its log to its own high watermark, which lags a fetch behind. "
        "Two failovers in a row, both within the ISR, with acks=all and min.insync.replicas=2, lose a record that was "
        "acknowledged and read; the broker that still has it keeps a different log for good.",
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
        "The follower of two replicas restarts, truncates an acknowledged record to its own high watermark, and leads "
        "before it has fetched it again. Variants in which the controller does not notice the restart [do not come "
        "true](#what-does-not-happen-on-real-kafka) on the releases that had the flaw.",
        {
            "hw-truncation-noticed-unclean": {
                (Word.DOCUMENTED,): "the defaults of 0.10 lose the record.",
                (Word.SAFE,): "the same settings keep it.",
            },
            "hw-truncation-noticed": {
                (Word.UNAVAILABLE,): "with clean elections the partition has no leader until the old one is back.",
            },
        },
    ),
    Exhibit(
        "The full disks of 2017",
        "a post-mortem of September 2017, of a Kafka before 0.11",
        "The disk of one broker of two is full, and it halts; the other one goes on alone, serves writes and reads, "
        "and halts on a full disk, too. The order of the restarts decides: the broker that died first leads with "
        "nothing, and the other one truncates its log to that.",
        {
            "full-disks-wrong-restart-order": {
                (Word.DOCUMENTED,): "with unclean elections both brokers lose everything; the group's offsets stay at "
                "3 and 7."
            },
            "regrown-after-the-incident": {
                (Word.SKIPPED, Word.DOCUMENTED): "when the logs have grown past the group's offsets, it goes on there, "
                "and skips records."
            },
            "full-disks-no-unclean-election": {
                (Word.UNAVAILABLE,): "with clean elections there is no leader until the last one is back."
            },
            "full-disks-last-dead-first": {(Word.SAFE,): "everything is kept when the last leader starts first."},
        },
    ),
    Exhibit(
        "Unequal logs after unclean elections",
        "KIP-279 (KAFKA-6361) in 2.0.0, KAFKA-7415 in 2.0.1",
        "Two brokers that are never up together write by turns, each elected uncleanly, so their logs have no leader "
        "epoch in common. From 0.11 to 2.0.0 the leader's answer about the end of an epoch does not show that, and a "
        "follower keeps a record that its leader lacks. With one common record KIP-279 is enough. What unclean "
        "elections give up is documented; that the replicas differ afterwards is not.",
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
        "KAFKA-6361, fixed by KIP-279 in 2.0.0",
        "A leader dies, another one writes to the same offsets, and the first one leads again before it has truncated "
        "its log. Up to 0.11 the follower cannot tell where the logs part.",
        {
            "fast-failover-shorter-log": {
                (Word.DIVERGED, Word.STUCK, Word.DOCUMENTED): "the follower fetches for ever from an offset within a "
                "batch of its leader's.",
                (Word.DOCUMENTED,): "it truncates its shorter log and follows.",
            },
            "fast-failover-equal-log": {
                (Word.DIVERGED, Word.DOCUMENTED): "it does not truncate an equally long log, and the replicas differ.",
                (Word.DOCUMENTED,): "it truncates an equally long log.",
            },
            "fast-failover-longer-log": {(Word.DOCUMENTED,): "it truncates a longer log."},
        },
    ),
    Exhibit(
        "The last replica standing",
        "KIP-966, eligible leader replicas: 4.0 optional, 4.1 by default",
        "Two of three replicas leave the ISR by clean shutdowns, and the third loses power with a page cache that was "
        "never flushed. As the only member of the ISR it is elected, cleanly, without what all three acknowledged. "
        "Where the other two were killed, B05/crash, eligible leader replicas do not help: the controller cannot tell "
        "a crash from a power loss, takes the one that is back for incomplete, too, and elects the last leader.",
        {
            "last-replica-loses-page-cache": {
                (Word.LOST,): "the record is lost in spite of acks=all and min.insync.replicas=2.",
                (Word.SAFE,): "a replica that has it is elected.",
            },
            "last-replica-loses-page-cache-min-isr-1": {
                (Word.LOST, Word.DOCUMENTED): "min.insync.replicas=1 loses it in spite of ELR; that what the last "
                "replica acknowledged alone is gone, too, is documented."
            },
            "crash-counts-as-loss": {(Word.LOST,): "lost, though a replica that was only killed has the record."},
        },
    ),
    Exhibit(
        "After an unclean election",
        "found here; no release has mended it",
        "A leader deletes records, and a replica with fewer is elected uncleanly. What is acknowledged afterwards is "
        "lost by a clean election: the old start of a log comes back after a crash (N04), or a broker whose log was "
        "emptied does not see that it differs (N05): [what happens, and what to do](after-unclean-elections.md).",
        {
            "log-start-comes-back": {(Word.LOST, Word.DOCUMENTED): "two records that both replicas had are deleted."},
            "emptied-log-forgets-its-epoch": {
                (Word.LOST, Word.DOCUMENTED): "two records that the leader alone had are deleted."
            },
        },
    ),
    Exhibit(
        "Eligible replicas, forgotten",
        "found here; apache/kafka#20716, fixed in 4.3.0",
        "The follower of two shuts down, and is eligible to lead. The leader comes back with an empty disk, and "
        "reports the log directory of its replica; from 4.1.0 to 4.2.1 the controller then also writes an empty ELR. "
        "The follower comes back with every record, and follows the empty one: [what happens, and what to "
        "do](elr-forgotten.md).",
        {
            "directory-assignment-forgets-elr": {
                (Word.LOST,): "everything is lost, with acks=all, min.insync.replicas=2 and clean elections only."
            },
            "directory-assignment-keeps-elr": {
                (Word.LOST,): "lost, too: there is no ELR, and the last in-sync replica leads.",
                (Word.SAFE,): "the replica with the records leads.",
            },
        },
    ),
    Exhibit(
        "Below the minimum",
        "KAFKA-15583, 3.7",
        "Until 3.7 consumers read what one replica alone had taken with acks=1 while the ISR was smaller than "
        "min.insync.replicas; since then the high watermark waits.",
        {
            "invisible-below-min-isr": {
                (Word.LOST,): "a consumer reads the record, and it is gone.",
                (Word.WEAK,): "it is gone, as acks=1 allows, and no consumer has read it.",
            }
        },
    ),
    Exhibit(
        "A laggard is elected",
        "Kafka's documentation of unclean.leader.election.enable",
        "The ISR dies, and a replica that lags leads and writes other records at offsets that had been acknowledged. "
        "That is documented. That the others come back and keep theirs is not.",
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
        "The leader refuses a write that it has appended, it is committed later, and the producer sends it again.",
        {
            "refused-after-append-and-retried": _THERE_TWICE,
            "refused-after-append-and-retried-idempotent": _THERE_ONCE,
        },
    ),
    Exhibit(
        "An acknowledgement is lost",
        "KIP-98",
        "A record is committed, its acknowledgement does not arrive, and the producer sends it again.",
        {"lost-ack-and-retried": _THERE_TWICE, "lost-ack-and-retried-idempotent": _THERE_ONCE},
    ),
    Exhibit(
        "The first release of a protocol",
        "KAFKA-13141, fixed in 2.8.1; KAFKA-14704, fixed in 3.4.1 and 3.5.0",
        "2.8.0 was the first release whose followers learn by the fetch itself where logs part. Its leaders counted a "
        "fetch that they answered with a divergence as an acknowledgement; and a follower took the high watermark of "
        "such an answer before it truncated its log, so that it showed what it was about to cut.",
        {
            "diverging-fetch-acknowledges": {(Word.LOST,): "an acknowledged record is lost."},
            "diverging-fetch-is-no-acknowledgement": {
                (Word.WEAK,): "followers truncate to their high watermarks, so the same schedule loses what its leader "
                "had acknowledged alone.",
                (Word.SAFE,): "the same schedule loses nothing.",
            },
            "diverging-watermark-exposes-tail": {
                (Word.SAFE,): "consumers that read from leaders do not see the wrong watermark."
            },
        },
    ),
    Exhibit(
        "Transactions without their leader",
        "KIP-98; KIP-890 in 4.0",
        "A transaction begins while its leader, and perhaps its coordinator, is dead; others before and after it are "
        "aborted.",
        {
            "transactions-outlive-their-leader": {
                (Word.SAFE,): "committed records are there once and in order, and read_committed shows nothing aborted."
            }
        },
    ),
    Exhibit(
        "The end of the wrong transaction",
        "KAFKA-17754, found by Jepsen in 2024; KIP-890 in 4.0 for clients that know it",
        "A request to end a transaction is late; its client repeats it on another connection and is answered. When the "
        "first one arrives, it ends the next transaction of that producer, which looks the same. No broker fails. "
        "Brokers of 4.x tell transactions apart (transaction.version=2), but only those of clients that know KIP-890, "
        "which the librdkafka used here does not: [what happens, and what to do](late-end.md).",
        {
            "late-abort-ends-the-next-transaction": {
                (Word.LOST,): "half of a transaction is gone whose commit was acknowledged."
            },
            "late-commit-ends-the-next-transaction": {
                (Word.DIRTY,): "read_committed shows half of a transaction that was aborted."
            },
        },
    ),
    Exhibit(
        "A batch that comes after its transaction",
        "KIP-890",
        "A batch is late, its producer aborts the transaction without it and keeps its epoch, and the batch "
        "arrives. It takes a client that does so, here one of seawall's own: librdkafka asks for a new epoch "
        "instead. Where brokers and client number their transactions (transaction.version=2, since 4.0), the batch "
        "is refused.",
        {
            "late-batch-opens-a-transaction": {
                (
                    Word.STUCK,
                ): "the batch opens a transaction that no coordinator ends, and read_committed gets no further.",
                (Word.SAFE,): "the leader asks the coordinator, and refuses the batch.",
            },
            "late-batch-joins-the-next-transaction": {
                (Word.DIRTY,): "the record of an aborted transaction is committed with the next one."
            },
            "late-batch-is-fenced": {(Word.SAFE,): "the batch has an epoch of the past, and is refused."},
            "late-abort-is-fenced": {(Word.SAFE,): "so is a request to abort that comes late."},
        },
    ),
    Exhibit(
        "Two requests in flight",
        "KAFKA-3197; max.in.flight.requests.per.connection",
        "The leader refuses the first of two requests in flight, and the producer sends it again after the leader has "
        "taken the second.",
        {
            "two-in-flight-reordered": {(Word.REORDERED,): "the order is reversed without idempotence."},
            "two-in-flight-idempotent": {(Word.SAFE,): "the order is kept with idempotence."},
        },
    ),
)
"""In the order in which they are shown."""

_NOT_WRITTEN_DOWN = (
    "A broker first writes its log start offsets half a minute after its start, and this run was over before. The "
    "harness took deleted records that were still on the disk for a part of the log."
)
_ASKED_ONCE = (
    "On a busy machine the harness waited one second for a broker's answer and took it for dead; it waits longer now."
)
_NO_EPOCH_YET = (
    "A broker learned its first leader epoch while the harness looked at it, and the harness combined its state before "
    "and after; it asks once more now."
)

BUSY: Mapping[str, str] = {
    "epoch-without-records/20261124T142754-0": (
        "The machine was busy, so that broker 2 had not yet fetched again when its fetches were held. A later try came "
        "to its end."
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
    "The machine was busy, and processes stood still for seconds: sessions ended early, or nodes did not come up in "
    "time. A later try came to its end.",
)
"""By its id, why a run broke off by no fault of Kafka's or the harness's."""

MISTAKEN: Mapping[str, str] = {
    "last-replica-loses-page-cache/20261122T003309-1": (
        "The harness itself was changed while it ran, and read no log; the next tries were made from a copy."
    ),
    "crash-while-loading/20261122T083647-1": (
        "The harness killed a broker that was loading its logs and took it for one that had not died; fixed since, and "
        "as predicted then."
    ),
    "bit-rot-in-the-leaders-log/20261122T104806-1": _ASKED_ONCE,
    "clock-jump-shrinks-the-isr/20261122T105350-1": _ASKED_ONCE,
    "corrupt-tail-follower/20261122T104515-1": _ASKED_ONCE,
    "hw-truncation-noticed/20261122T103256-1": _ASKED_ONCE,
    "last-replica-loses-page-cache/20261122T104012-1": _ASKED_ONCE,
    "retention-overtakes-a-follower/20261122T105204-1": _ASKED_ONCE,
    "unclean-flip-flop-common-prefix/20261122T103432-1": _ASKED_ONCE,
    "spoofed-follower-fetch/20261122T104328-1": (
        "The harness sent a version of Fetch that 0.10 does not know, and the broker closed the connection; it asks "
        "for the versions now."
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
