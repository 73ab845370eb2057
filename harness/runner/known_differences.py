"""Lists the known differences between Kafka releases and the predictions for their generation, with the reasons.

A difference is known only word for word: any other one of the same scenario and release is new.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.outcome import Word
from harness.targets.awaiting import WHAT_NODES_SAID

_ANY_WORD = "..."


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """The outcome of one scenario on some releases where it differs from the predicted one.

    Attributes:
        releases: those on which it was seen.
        observed: the observed words; empty where a step breaks the run off.
        differences: all sentences about it, as in :class:`harness.runner.matrix.Cell`; ``...`` stands for one word
            that may vary.
        why: the reason, as text.
    """

    scenario: str
    releases: tuple[str, ...]
    observed: tuple[Word, ...]
    differences: tuple[str, ...]
    why: str

    def is_of(self, scenario: str, release: str | None) -> bool:
        """Whether it is known of that scenario on that release; for no release, None, of any."""
        return self.scenario == scenario and release in self.releases

    def is_just(self, observed: Sequence[str], differences: Sequence[str]) -> bool:
        """Whether exactly it was observed."""
        said = [one.partition(WHAT_NODES_SAID)[0] for one in differences]
        return tuple(observed) == self.observed and sorted(map(self._as_known, said)) == sorted(self.differences)

    def _as_known(self, said: str) -> str:
        """``said`` as it is known; itself, where it is not."""
        return next((known for known in self.differences if _means(known, said)), said)


def why_it_differs(
    scenario: str, release: str | None, observed: Sequence[str], differences: Sequence[str]
) -> str | None:
    """The reason, where a run on ``release``, None for none, differs in a known way.

    If it went as predicted, why it was known to differ. None: no difference is known.
    """
    known = [one for one in KNOWN_DIFFERENCES if one.is_of(scenario, release)]
    return next((one.why for one in known if not differences or one.is_just(observed, differences)), None)


def _means(known: str, said: str) -> bool:
    return re.fullmatch(r"\S+".join(map(re.escape, known.split(_ANY_WORD))), said) is not None


# ----------------------------------------------------------------------------------------------------------- reasons

_ELR_EMPTIED = (
    "A bug of 4.1.0 to 4.2.1 (apache/kafka#20716): when a broker reports the directory of its replicas, the controller "
    "empties the ELR. "
)
_ELIGIBLE_FORGOTTEN = (
    f"{_ELR_EMPTIED}So it did not elect broker 1, which had everything, but broker 0, whose disk is empty. N03/kafka "
    "waits for just that."
)
_LAST_ELIGIBLE_FORGOTTEN = (
    f"{_ELR_EMPTIED}Here broker 0 itself was in it, and leads all the same, as last known leader."
)
_STILL_FORGOTTEN = f"{_ELR_EMPTIED}N03/kafka predicts that, and this scenario runs into it, too."
_STANDS_ALONE = (
    "In the message format of 0.10 uncompressed records stand alone, no offset lies within a batch, and the follower "
    "goes on. The built-in brokers write batches in every generation."
)
_ENDS_WHERE_IT_WAS_CUT = (
    "Kafka drops whole batches, but takes its log to end at the offset asked for, within the dropped batch "
    "(Log.truncateTo). So the follower fetches from 21, and has nothing at 11 to 20. The built-in brokers' log ends "
    "with the last batch that is left, and they fetch the rest."
)
_FETCHER_STOPS = (
    "A bug of 0.11.0.3 (KAFKA-6975; 2.0.0 has the class that came with the fix): the deletion ends within the leader's "
    "first batch, the follower starts anew there, receives the whole batch, and takes it for out of order (Log.append: "
    "IllegalArgumentException). That stops the thread that fetches all partitions of this leader."
)
_BROKER_0_WAS_LAST = (
    "A controller of 1.1.1 to 2.1.1 learns of both dead brokers at once, and takes broker 1 out of the ISR first (its "
    "log, in every try; the reason for this order is not known): broker 0 was the last member, and broker 1 might not "
    "lead."
)
_REGISTERED_LATER = (
    "Both sessions end at the same moment, and the controller first removes from the ISR the broker that registered "
    "first (the broker epochs in its log, in eight runs of eight): here broker 1, so that broker 0 was the last member."
)
_NOBODY_TAKEN_OUT = (
    "Both sessions had ended before the controller was back, and a starting controller of 1.1.1 to 2.1.1 takes no dead "
    "broker out of the ISR (its log). So it elected broker 1 out of both, in epoch 1 and not in 3; the records are as "
    "predicted."
)
_LED_AGAIN_IN_ITS_EPOCH = (
    "The controller was back when both sessions had ended. It sends the returning broker 1 the old state first, as "
    "leader in epoch 0, and 0.14 s later its election in epoch 1 (the controller's log). In between broker 1 led in "
    "epoch 0 again, without the record that its power loss had taken, and appended m2 at that offset: epoch 0 has two "
    "records there, which no comparison of epochs shows, and the replicas differ."
)
_AS_FROM_2_0 = "1.1.1 replicates as generation 0.11 does, and its controller and disks are those of 2.0.0: "
_LAST_MEMBER_STAYS = (
    f"{_AS_FROM_2_0}the last member of an ISR stays in it when its broker dies, unclean elections or not, and leads "
    "again by a clean one."
)
_DIRECTORY_GIVEN_UP = f"{_AS_FROM_2_0}a broker gives up a log directory that fails, and does not halt (KIP-112)."
_WAITS_WITH_THE_LOCK = (
    "A leader of 2.1.1 that is cut off from ZooKeeper and wants to shrink the ISR waits for ZooKeeper while it holds "
    "the ISR lock, which every reader of the log needs from 2.1 on (Partition.readRecords, absent in 2.0.1). So broker "
    "0 answers no look until the links are back."
)
_EPOCHS_NOT_RELIED_ON = (
    "Clients look where logs part only if they can rely on the leader epochs of the metadata, from 2.4 on (Metadata "
    "v9): against 2.1.1 librdkafka fetches at once, as its log says, and names no current epoch. Generation 2.1 stands "
    "for 2.1 to 2.7."
)
_NOT_LOOKED_AT = (
    "A bug of 2.8.1 (KAFKA-13091, fixed later): a leader that has asked the controller to shrink the ISR does not "
    "check its watermark when the answer comes (Partition.handleAlterIsrResponse). Only another event then commits the "
    "records that waited for the removed members, and none came."
)

_NO_MARKER_WITHOUT_LEADER = (
    "A flaw of 4.3.0 and 4.4.0 (docs/leaderless-markers.md): the coordinator of a transaction takes a partition "
    "without a leader for a deleted one, and sends it no marker. The next abort of the producer there closes the "
    "committed record."
)

# --------------------------------------------------------------------------------------------------------- the table

_LATE = "did not come true within ... s:"
_BROKER_1_MAY_NOT_LEAD = (
    f"schedule[15].until: {_LATE} ledger-0: the leader is -1, not 1; ledger-0: the ISR is [0], not [1]; "
    "ledger-0: node 1: process ... exists, in state ..., and answers."
)
_FELL_BACK = (
    "unexpected hw-regression: Node 0, leader in epoch 3, fell back to 0, although everything below 3 had been "
    "committed. It follows from the lost-write of value ... at offset 0."
)
_DISAGREE_AT_1 = (
    "unexpected replica-divergence: The replicas' logs disagree about offset 1; see the evidence for every side. "
    "It follows from the lost-write of value ... at offset 1."
)
_UNANSWERED = "schedule[{}].send: {} of {} records were acknowledged (REQUEST_TIMED_OUT)."


def _breaks_off(scenario: str, releases: tuple[str, ...], difference: str, why: str) -> KnownDifference:
    return KnownDifference(scenario, releases, (), (difference,), why)


def _forgotten(broker: int, least: int) -> str:
    return (
        f"unexpected illegal-isr: The controller decided on leader -1 and ISR []: [{broker}] could be elected, and "
        f"fewer than {least} are left who can."
    )


KNOWN_DIFFERENCES: tuple[KnownDifference, ...] = (
    KnownDifference(
        "empty-disk-leads",
        ("4.1.0",),
        (Word.LOST,),
        (_forgotten(0, least=1),),
        _LAST_ELIGIBLE_FORGOTTEN,
    ),
    KnownDifference(
        "directory-assignment-keeps-elr",
        ("4.1.0",),
        (Word.LOST,),
        (
            "predicted and not observed: safe.",
            "observed and not predicted: lost.",
            *(f"the log of ledger-0 on broker {broker} is (empty), not m0..m2@0." for broker in (0, 1)),
            *(
                f"unexpected lost-write: Value ... was acknowledged at offset {offset} (acks=all) and the final read "
                "does not deliver it there. It had been committed."
                for offset in range(3)
            ),
            *(
                f"unexpected vanished-read: Value ... was delivered at offset {offset} and the final read does not "
                f"deliver it there. It follows from the lost-write of value ... at offset {offset}."
                for offset in range(3)
            ),
            (
                "unexpected hw-regression: Node 0, leader in epoch 2, fell back to 0, although everything below 3 had "
                "been committed. It follows from the lost-write of value ... at offset 0."
            ),
            _forgotten(1, least=2),
        ),
        _STILL_FORGOTTEN,
    ),
    KnownDifference(
        "leaderless-partition-gets-its-marker",
        ("4.3.0", "4.4.0"),
        (Word.LOST, Word.UNAVAILABLE),
        (
            "observed and not predicted: lost.",
            (
                "unexpected lost-write: Value ... was acknowledged at offset 0 (acks=all) and the final read does not "
                "deliver it there. It had been committed."
            ),
            (
                "unexpected wrong-marker: Value ... at offset 0 belongs to a transaction that is known to be "
                "committed, and an abort marker closes it in the final leader's log."
            ),
        ),
        _NO_MARKER_WITHOUT_LEADER,
    ),
    KnownDifference(
        "power-loss-batches-overlap",
        ("0.10.2.2",),
        (Word.DIVERGED, Word.DOCUMENTED),
        (
            "predicted and not observed: stuck.",
            "the log of ledger-0 on broker 0 is m0@-1 a1..a3@-1 b4@-1 b5@-1, not m0@0 a1..a3@0.",
        ),
        _STANDS_ALONE,
    ),
    KnownDifference(
        "fast-failover-shorter-log",
        ("0.10.2.2",),
        (Word.DIVERGED, Word.DOCUMENTED),
        (
            "predicted and not observed: stuck.",
            "the log of ledger-0 on broker 1 is r0..r10@-1 b11..b15@-1 a16..a30@-1, not r0..r10@0 b11..b15@1.",
        ),
        _STANDS_ALONE,
    ),
    KnownDifference(
        "fast-failover-longer-log",
        ("0.10.2.2",),
        (Word.DIVERGED, Word.DOCUMENTED),
        (
            "predicted and not observed: stuck.",
            "the log of ledger-0 on broker 1 is r0..r10@-1 b11..b25@-1 a26..a30@-1, not r0..r10@0 b11..b25@1.",
        ),
        _STANDS_ALONE,
    ),
    KnownDifference(
        "fast-failover-longer-log",
        ("0.11.0.3", "1.1.1"),
        (Word.DIVERGED, Word.DOCUMENTED),
        (
            "observed and not predicted: diverged.",
            "the log of ledger-0 on broker 1 is r0..r10@0 a21..a30@3, not r0..r10@0 a11..a20@0 a21..a30@3.",
            *(
                f"unexpected replica-divergence: The replicas' logs disagree about offset {offset}; see the evidence "
                f"for every side. It follows from the lost-write of value ... at offset {offset}."
                for offset in range(11, 21)
            ),
        ),
        _ENDS_WHERE_IT_WAS_CUT,
    ),
    _breaks_off(
        "log-ends-within-the-leaders-first-batch",
        ("0.11.0.3",),
        f"schedule[19].until: {_LATE} ledger-0: the ISR is [1, 2], not [0, 1, 2]; "
        "ledger-0: on broker 0 log_end_offset is 2, not 4.",
        _FETCHER_STOPS,
    ),
    _breaks_off(
        "power-loss-shorter-log-leads", ("2.0.0", "2.0.1", "2.1.1"), _BROKER_1_MAY_NOT_LEAD, _BROKER_0_WAS_LAST
    ),
    _breaks_off("power-loss-batches-overlap", ("1.1.1", "2.0.0", "2.1.1"), _BROKER_1_MAY_NOT_LEAD, _BROKER_0_WAS_LAST),
    *(
        _breaks_off(
            scenario,
            ("4.1.0", "4.3.0"),
            f"schedule[13].until: {_LATE} ledger-0: the ELR is [0], not [1].",
            _REGISTERED_LATER,
        )
        for scenario in ("power-loss-shorter-log-leads", "power-loss-batches-overlap")
    ),
    _breaks_off(
        "zombie-leader-acks-all",
        ("2.1.1",),
        f"schedule[6].until: {_LATE} ledger-0: node 0: process ... exists, in state ..., but does not answer.",
        _WAITS_WITH_THE_LOCK,
    ),
    _breaks_off(
        "regrown-and-found-out",
        ("2.1.1",),
        "schedule[12].consume: what happened to the consumer is 'ok', not 'truncated'.",
        _EPOCHS_NOT_RELIED_ON,
    ),
    KnownDifference(
        "power-loss-shorter-log-leads",
        ("1.1.1", "2.0.0", "2.1.1"),
        (Word.DOCUMENTED,),
        (
            "the log of ledger-0 on broker 0 is m0@0 m2@1, not m0@0 m2@3.",
            "the log of ledger-0 on broker 1 is m0@0 m2@1, not m0@0 m2@3.",
        ),
        _NOBODY_TAKEN_OUT,
    ),
    KnownDifference(
        "power-loss-shorter-log-leads",
        ("2.0.1",),
        (Word.DIVERGED, Word.DOCUMENTED),
        (
            "observed and not predicted: diverged.",
            "the log of ledger-0 on broker 0 is m0@0 m1@0, not m0@0 m2@3.",
            "the log of ledger-0 on broker 1 is m0@0 m2@0, not m0@0 m2@3.",
            _DISAGREE_AT_1,
        ),
        _LED_AGAIN_IN_ITS_EPOCH,
    ),
    KnownDifference(
        "empty-disk-leads-unclean",
        ("1.1.1",),
        (Word.LOST,),
        (
            "predicted and not observed: documented.",
            "observed and not predicted: lost.",
            *(
                f"unexpected {kind}: Value ... was {told} at offset {offset}{how} and the final read does not deliver "
                f"it there. {follows.format(offset)}"
                for kind, told, how, follows in (
                    ("lost-write", "acknowledged", " (acks=all)", "It had been committed."),
                    ("vanished-read", "delivered", "", "It follows from the lost-write of value ... at offset {}."),
                )
                for offset in range(3)
            ),
            _FELL_BACK,
        ),
        _LAST_MEMBER_STAYS,
    ),
    _breaks_off(
        "log-dir-fails-follower",
        ("1.1.1",),
        f"schedule[3].until: {_LATE} the brokers with a session are [0, 1, 2], not [0, 1]; "
        "ledger-0: the ISR is [0, 1, 2], not [0, 1]; node 2: process ... exists, in state ...",
        _DIRECTORY_GIVEN_UP,
    ),
    _breaks_off(
        "log-dir-fails",
        ("1.1.1",),
        f"schedule[3].until: {_LATE} the brokers with a session are [0, 1, 2], not [1, 2]; ledger-0: the leader is 0, "
        "not 1; ledger-0: the ISR is [0, 1, 2], not [1, 2]; node 0: process ... exists, in state ...",
        _DIRECTORY_GIVEN_UP,
    ),
    _breaks_off(
        "log-dir-fails-sole-in-sync",
        ("1.1.1",),
        f"schedule[7].until: {_LATE} the brokers with a session are [0], not []; ledger-0: the leader is 0, not -1; "
        "node 0: process ... exists, in state ...",
        _DIRECTORY_GIVEN_UP,
    ),
    KnownDifference(
        "power-loss-batches-overlap",
        ("2.0.1",),
        (Word.DOCUMENTED,),
        (
            "the log of ledger-0 on broker 0 is m0@0 b1..b5@1, not m0@0 b1..b5@3.",
            "the log of ledger-0 on broker 1 is m0@0 b1..b5@1, not m0@0 b1..b5@3.",
        ),
        _NOBODY_TAKEN_OUT,
    ),
    *(
        _breaks_off(scenario, ("2.8.1",), difference, _NOT_LOOKED_AT)
        for scenario, difference in {
            "sole-isr-member-dies-offline": _UNANSWERED.format(3, 0, 1),
            "sole-isr-member-dies-unclean": _UNANSWERED.format(3, 0, 1),
            "retried-isr-change": _UNANSWERED.format(4, 0, 1),
            "out-of-range-and-back-to-the-beginning": _UNANSWERED.format(3, 3, 4),
            "out-of-range-and-on-to-the-end": f"schedule[5].until: {_LATE} schedule[3].send: not every answer has "
            "come; ledger-0: on broker 0 high_watermark is 1, not 5.",
            "out-of-range-and-an-error": _UNANSWERED.format(3, 3, 4),
            "regrown-and-found-out": _UNANSWERED.format(1, 6, 7),
            "regrown-past-the-committed-offset": _UNANSWERED.format(1, 6, 7),
            "clock-jump-shrinks-the-isr": f"schedule[8].until: {_LATE} schedule[4].send: not every answer has come; "
            "ledger-0: on broker 0 high_watermark is 1, not 2.",
            "clock-step-back-keeps-laggards": _UNANSWERED.format(4, 0, 1),
        }.items()
    ),
    _breaks_off(
        "empty-disk-min-isr-2",
        ("4.1.0", "4.1.1", "4.2.0"),
        f"schedule[8].until: {_LATE} ledger-0: the ELR is [], not [1].",
        _ELIGIBLE_FORGOTTEN,
    ),
    _breaks_off(
        "empty-disk-min-isr-2",
        ("4.1.0",),
        f"schedule[12].until: {_LATE} ledger-0: the leader is 0, not 1; ledger-0: on broker 0 leader is 0, not 1; "
        "ledger-0: on broker 0 log_end_offset is 0, not 3.",
        _ELIGIBLE_FORGOTTEN,
    ),
)
"""Oldest release first."""
