"""The exhibits: which losses of real Kafka are on show, what is known of each, and why a release may differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One exhibit.

    Attributes:
        title: its heading.
        issues: where the loss was written down.
        happened: what is known of it, in a paragraph.
        scenarios: those that replay it.
        shows: what the recorded runs are to show.
    """

    title: str
    issues: str
    happened: str
    scenarios: tuple[str, ...]
    shows: str


EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "Lost in two clean elections",
        "KIP-101 (KAFKA-1211), mended in 0.11.0",
        "Up to 0.10 a follower that turns to another leader cuts its log to its own high watermark, which lags a fetch "
        "behind. Two failovers in a row, both from the ISR, with acks=all and min.insync.replicas=2, and a record that "
        "was acknowledged and read is gone; the broker that still has it keeps a different log for good.",
        ("kip-101-double-failover",),
        "0.10.2.2 loses one record of each partition and diverges; every later release keeps them.",
    ),
    Exhibit(
        "Cut at a restart, and elected",
        "KIP-101, scenario 1; unclean elections were on by default until 0.11 (KAFKA-4623)",
        "The follower of two replicas restarts, cuts an acknowledged record to its own high watermark, and leads "
        "before it has fetched it again.",
        ("hw-truncation-noticed-unclean", "hw-truncation-noticed"),
        "With the defaults of its time 0.10.2.2 loses the record that the new leader had held before it restarted, and "
        "0.11.0.3 does not. With unclean elections off nobody leads for a while, and nothing is lost. The variants in "
        "which the restart goes unnoticed are played on the built-in brokers only: see the differences below.",
    ),
    Exhibit(
        "The full disks of 2017",
        "a post-mortem of September 2017, of a Kafka before 0.11",
        "The disk of one broker of two is full, and it halts; the other one goes on alone, is written to and read "
        "from, and then its disk is full, too. Who is started first decides: the one that died first leads with "
        "nothing, and the other one cuts its log to that.",
        (
            "full-disks-wrong-restart-order",
            "regrown-after-the-incident",
            "full-disks-no-unclean-election",
            "full-disks-last-dead-first",
        ),
        "With unclean elections everything is gone on both brokers, while the group's offsets stay at 3 and 7. Without "
        "them nobody leads until the right one is back. When the logs have grown past the group's offsets again, it "
        "goes on in the midst of records that it was never given.",
    ),
    Exhibit(
        "Unequal logs after unclean elections",
        "KIP-279 (KAFKA-6361) in 2.0.0, KAFKA-7415 in 2.0.1",
        "Two brokers that are never up together write by turns, each elected uncleanly. Their logs have no leader "
        "epoch in common, and from 0.11 to 2.0.0 the answer to where an epoch ends does not say so: a record stays "
        "that the other one does not have. With one record in common KIP-279 is enough, so that 2.0.0 agrees where "
        "0.11 does not.",
        ("unclean-flip-flop", "unclean-flip-flop-common-prefix"),
        "What unclean elections give up is documented everywhere. That the replicas differ afterwards is not: they do "
        "up to 2.0.0, and do not from 2.0.1 on.",
    ),
    Exhibit(
        "A fast failover",
        "KAFKA-6361, mended by KIP-279 in 2.0.0",
        "A leader dies, another one writes to the same offsets, and the first one leads again before it has cut "
        "anything. Up to 0.11 the follower cannot tell where the logs part.",
        ("fast-failover-shorter-log", "fast-failover-equal-log", "fast-failover-longer-log"),
        "On 0.11.0.3 a follower asks for an offset within a batch of its leader's for ever, or differs silently; on "
        "2.0.0 it cuts and follows.",
    ),
    Exhibit(
        "The last replica standing",
        "KIP-966, eligible leader replicas: 4.0 optional, 4.1 by default",
        "Two of three replicas leave the ISR in good order, and the third loses power with a page cache that was never "
        "flushed. It is the only member of the ISR, so that it is elected, cleanly, without what was acknowledged by "
        "all three.",
        ("last-replica-loses-page-cache", "last-replica-loses-page-cache-min-isr-1"),
        "3.9.1 loses the record in spite of acks=all and min.insync.replicas=2; 4.1.0 elects one that has it. With "
        "min.insync.replicas=1 eligible leader replicas are of no help.",
    ),
    Exhibit(
        "Below the minimum",
        "KAFKA-15583, 3.7",
        "What one replica alone has taken with acks=1, while fewer than min.insync.replicas are in sync, was shown to "
        "consumers until 3.7 let the high watermark stand still.",
        ("invisible-below-min-isr",),
        "2.8.1 shows a record, and it is gone; 3.9.1 never shows it.",
    ),
    Exhibit(
        "A laggard is elected",
        "Kafka's documentation of unclean.leader.election.enable",
        "Everybody in sync dies, and a replica that lags leads and writes other records at offsets that had been "
        "acknowledged. That is documented. That the others come back and keep theirs is not.",
        ("unclean-election-of-a-laggard",),
        "On 0.10.2.2 the replicas differ for good; later releases lose what the configuration gave up, and agree.",
    ),
    Exhibit(
        "An error is not a no",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND; KIP-98",
        "A write is refused after it was appended, is committed later, and a producer without idempotence sends it "
        "again.",
        ("refused-after-append-and-retried", "refused-after-append-and-retried-idempotent"),
        "The record is there twice on every release, and once with idempotence.",
    ),
    Exhibit(
        "An acknowledgement is lost",
        "KIP-98",
        "A record is appended and committed, and its acknowledgement does not arrive; the producer sends it again.",
        ("lost-ack-and-retried", "lost-ack-and-retried-idempotent"),
        "Twice without idempotence on every release, once with it.",
    ),
    Exhibit(
        "The first release of a protocol",
        "KAFKA-13141, mended in 2.8.1; KAFKA-14704, mended in 3.4.1 and 3.5.0",
        "2.8.0 was the first release whose followers ask where logs part by the fetch itself. Its leaders took a fetch "
        "that was told of a divergence for an acknowledgement; and a follower that was told to cut its log took the "
        "watermark of that answer first, so that it showed what it was about to cut.",
        (
            "diverging-fetch-acknowledges",
            "diverging-fetch-is-no-acknowledgement",
            "diverging-watermark-exposes-tail",
        ),
        "On 2.8.0 an acknowledged record is lost; the same schedule without the bug is played on 2.8.1.",
    ),
    Exhibit(
        "Transactions without their leader",
        "KIP-98; KIP-890 in 4.0",
        "A transaction begins while its leader, and perhaps its coordinator, is dead; others before and after it are "
        "aborted.",
        ("transactions-outlive-their-leader",),
        "What was committed is there once and in order, and who reads committed records is given nothing of what was "
        "aborted. The built-in brokers have no transactions: what is predicted is what Kafka promises.",
    ),
    Exhibit(
        "Two requests in flight",
        "KAFKA-3197; max.in.flight.requests.per.connection",
        "Of two requests in flight the first is refused and sent again when the second one has been taken.",
        ("two-in-flight-reordered", "two-in-flight-idempotent"),
        "The order is turned round without idempotence, and kept with it.",
    ),
)
"""In the order in which they are shown."""

EXPLAINED: Mapping[str, str] = {
    "last-replica-loses-page-cache/20261122T003309-1": (
        "The harness itself was changed while it ran, and read no log; the next tries were made from a copy."
    ),
}
"""Why a recorded run did not go as predicted, by its id."""
