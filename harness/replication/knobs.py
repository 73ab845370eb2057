"""The table of knobs by which the generations of Kafka's replication protocol differ.

A generation is a named row of :data:`GENERATIONS`; a mutant is a row with one knob changed. The core reads knobs and
never the version. A generation means its newest patch release: bugs that a patch release has fixed are knobs, which no
generation turns on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, get_args, get_type_hints

from harness.errors import UsageError
from harness.replication.bugs import BUGS
from harness.spelling import as_text, closest


@dataclass(frozen=True, slots=True)
class Knobs:
    """The levers of one replication protocol. Without arguments: the rules of Kafka 4.1.

    Attributes:
        truncation: how a follower decides what to truncate.

            * ``hw``: what lies above its own high watermark, when it becomes a follower (Kafka <= 0.10.2).
            * ``epoch_offset``: it asks the leader where its latest epoch ends (OffsetForLeaderEpoch v0, KIP-101,
              Kafka 0.11).
            * ``epoch_pair``: the leader's answer also has the epoch that ends there, and the follower asks again until
              they agree on one (v1, KIP-279, Kafka 2.0).
            * ``diverging_fetch``: the leader's answer to a fetch has the diverging epoch (KIP-595, effective from
              Kafka 2.8).
            * ``leader_hw``: what lies above the *leader's* watermark in its first answer; never in Kafka.
            * ``hw_after_first_fetch``: what lies above its own watermark, as the new leader's first answer has raised
              it; considered and rejected by KIP-101.

            With epochs, a follower whose log or whose leader has none falls back to its own watermark.
        lookup_below_first: the answer about an epoch older than all in the log: ``undefined`` or that this epoch ends
            at the ``start_of_first`` (KAFKA-7415, Kafka 2.0.1).
        epoch_entry: when a leader records its epoch's start offset: at its ``first_append`` (KIP-101) or
            ``on_election`` (KAFKA-7415, Kafka 2.0.1).
        truncate_when: which LeaderAndIsr makes a follower check what to truncate: one whose ``leader_id_changed``, or
            also after an ``epoch_gap`` (a missed epoch: KAFKA-7164, Kafka 2.0.1), or with ``every_epoch`` (Kafka 2.1).
            After a restart it always does.
        reelected_leader: what a leader that is elected again after a missed epoch, in which its followers may have
            followed another one, does with their log end offsets: it ``keeps`` them (every Kafka), or it ``forgets``
            them and waits for their next fetches, a remedy that Kafka does not have; see N01 among the scenarios.
        fetch_fencing: whether a leader refuses fetches of another leader epoch (KIP-320, Kafka 2.1).
        lookup_fencing: the same for OffsetForLeaderEpoch.
        isr_join: what a follower must have fetched to enter the ISR: the leader's high watermark (``hw``), or
            also the start offset of the leader's epoch (``hw_and_epoch_start``, KAFKA-7128, Kafka 2.0.1).
        broker_epoch_check: whether the controller refuses a new ISR member that has restarted since the leader
            heard of it, and a leader the fetch of a follower's earlier life (KIP-903, Kafka 3.5).
        fenced_replicas_join: whether the controller accepts ISR members that have no session (until KIP-841,
            Kafka 3.3).
        isr_update: which replicas the high watermark waits for while an ISR change is pending: with a ``synchronous``
            change it does not move (ZooKeeper's compare-and-set under the partition's lock), with ``maximal`` it waits
            for all that may be in the ISR (KIP-497, Kafka 2.7), with ``naive`` only for the old ISR.
        hw_in_fetch_response: whether an answer carries the watermark from before the fetch that it answers counted
            (``pre_update``) or from after (``post_update``, Kafka 1.0.0 to 1.1.0 by accident).
        hw_advance: ``on_fetch``: the watermark rises when all have fetched. ``after_followers``: when all have also
            raised their own; considered and rejected by KIP-101, for it costs one more round trip.
        hw_rule: the leader's watermark: the greater of itself and the least log end (``max_of_min``), or the least
            of them all (``min_of_all``, with which it never leaves 0).
        follower_hw_rule: a follower's watermark is bounded by its log end and by that of its ``leader`` or by its
            ``own`` old one (with which it never rises).
        hw_waits_for: the ISR and followers that have caught up and are about to join (``isr_and_caught_up``), or the
            ISR only.
        newcomers: the followers that a leader proposes for the ISR, and its watermark waits for, once they have caught
            up: ``anybody``; or only ``eligible`` ones, with a session and the broker epoch of their last fetch
            (KIP-841, KIP-903, and KAFKA-15021 for the watermark: Kafka 3.6).
        in_sync_at_the_end: whether a follower that has the whole log stays in the ISR without further fetches
            (KAFKA-7152, Kafka 2.1), or has to fetch at least once in ``replica.lag.time.max.ms``.
        hw_below_min_isr: whether the high watermark may ``advance`` while the ISR is smaller than
            ``min.insync.replicas``, or must ``freeze`` (KAFKA-15583, Kafka 3.7).
        out_of_range: what a follower does whose next offset its leader does not have. If its log is the longer one
            it truncates it to the leader's log end offset (``lenient``, KAFKA-7414, Kafka 2.0.1), unless unclean
            elections are off: then the broker shuts down (``exit``, Kafka 0.8.1 to 2.0.0). ``wipe`` also shuts down,
            and otherwise deletes its whole log and starts anew at the leader's log start (Kafka <= 0.9.0.0).
        deletion_answered: when a leader answers DeleteRecords: ``at_once``, or ``when_followed`` by all replicas with
            a session, whose logs then start there, too (KIP-107, Kafka 0.11, which has added the request).
        straddled_batch: what happens to a follower's log that ends within the batch in which its leader's begins after
            DeleteRecords: it stays, and the follower makes no progress (``refused``, every Kafka), or its batch there
            is ``cut``, a remedy that Kafka does not have; see N02 among the scenarios.
        elections: which replicas may be elected: the ``isr``; or also the eligible leader replicas, with
            unclean shutdowns detected and the last known leader as the last resort (``elr``, KIP-966, Kafka 4.1).
        last_isr_member: what happens to the last member of an ISR when its broker dies and no live replica can lead: it
            ``stays``, so that it alone leads again by a clean election; or it ``leaves_if_unclean``: where unclean
            elections are allowed the ISR becomes empty, and the first replica to return is elected uncleanly, even if
            it is the last member (ZooKeeper's controllers up to Kafka 1.0). With ``elections=elr`` it always leaves.
        broker_bounce: how the controller treats a new process of a broker whose session has not ended: ``unnoticed``:
            after a clean shutdown it continues the session and stays in every ISR, as the controller has not seen that
            it was away; after any other end it is refused until the session ends, as ZooKeeper keeps the node of the
            old one, unless there was no controller (Kafka <= 2.1). ``noticed``: it has left every ISR and come back
            (KIP-380, Kafka 2.2). ``refused`` until the session ends, always (KRaft).
        shrink_raises_epoch: whether the controller raises the leader epoch also when it takes a dead broker out of an
            ISR and the leader stays, so that requests of that broker in flight are fenced (ZooKeeper's controllers;
            KRaft's until KAFKA-15021, metadata version 3.6). A leader's proposal does not raise it, as with ZooKeeper;
            before that version KRaft's raised it then, too, which is not modelled.
        diverging_fetch_is_progress: the bug KAFKA-13141: a fetch that is answered with a diverging epoch still
            counts as an acknowledgement of everything before its offset.
        stale_truncation_applied: the bug KAFKA-13207: an answer with a diverging epoch is applied although this
            replica follows another leader by now, or leads itself.
        hw_from_diverging: the bug KAFKA-14704: the watermark of such an answer is taken before the log is cut.
        spurious_out_of_range: the bug KAFKA-2477: the first fetch at the log end after an append is out of range.
        empty_isr_retry: the bug KAFKA-15353: an ISR change that is sent again has lost its members on the way.
        controller_epoch_fencing: whether a replica refuses requests of a controller older than the newest one so far.
        disk_full: what a broker does that cannot write: ``halt_broker`` (Kafka <= 0.11), or take the directory
            offline, and halt when it was the last (``offline_dir``, KIP-112, Kafka 1.0).
        recreated_elsewhere: the bug KAFKA-16234 (Kafka 3.7.0): a replica whose log directory has failed is created
            again, empty, in another one when the controller next sends a new state of its partition.
        placing_forgets_eligible: the bug that apache/kafka#20716 has fixed (Kafka 4.0.0 to 4.2.1): when a broker
            reports the log directory of a replica, the controller forgets the ELR.
        clean_shutdown_marker: when a starting broker removes the file that marks a clean shutdown:
            ``removed_first``, before it loads its logs; ``removed_late``, after (KAFKA-10471, Kafka < 2.8); it may be
            ``kept`` for ever, or there may be ``none`` at all, so that every start recovers.
        recovered_tail: what a start after a crash does with records beyond the recovery point: they are ``left``
            there, unflushed; or they are ``not_flushed``, and the point moves past them (KAFKA-10101, Kafka < 2.8).
            That they are ``flushed`` first is a remedy that Kafka did not choose.
        lowered_log_start: whether the checkpoint of log starts is ``written`` at once when a replica is cut below the
            offset at which its log starts, a remedy that Kafka does not have; or stays ``unwritten`` until it is due
            (every Kafka), so that the old start comes back after a crash; see N04 among the scenarios.
        emptied_log_epoch: whether a replica of whose log everything was deleted has ``forgotten`` its last leader epoch
            after a restart, so that it cannot find out where it differs from its leader (every Kafka); that it is
            ``kept`` is a remedy; see N05 among the scenarios.
        segment_names: whether a new segment's name is ``flushed`` with its content, or ``not_flushed`` (KAFKA-3968,
            Kafka < 3.0).
        offset_expiry: from when on ``offsets.retention.minutes`` counts: from the commit, also in a group with members
            (``after_commit``), or from when the group had no member left, of topics that members subscribe to
            (``after_empty``, KIP-211, 2.1).
        tombstones: until when the log cleaner keeps a key without a value: until ``delete.retention.ms`` after the
            newest segment was written that a pass had left clean (``segment_age``), or after the first pass that left
            the tombstone over, which writes this ``delete_horizon`` into its batch (KIP-534, Kafka 3.1).
        topic_identity: what a topic is known by: its ``name``, so that none of that name can be created before every
            replica of a deleted one is deleted (ZooKeeper's controllers); or its ``id``, so that one can at once, and a
            broker that was away deletes what it has of the old one when it returns (KIP-516, KRaft).
        transactions: whether brokers have ``none`` (Kafka <= 0.10.2); or a leader appends an ``unverified`` batch of a
            transaction that its coordinator may not know, or know as ended (KIP-98, Kafka 0.11), so that it may stay
            open for ever; or asks the coordinator first, once in each transaction (``verified``, KIP-890, Kafka 3.6).
            ``numbered``: besides, each transaction of a client that speaks transaction version 2 has an epoch of its
            own, which fences what is late, and a leader adds its partition to it (KIP-890, Kafka 4.0).
        transactional_offsets: whether the coordinator of a group asks which member commits offsets in a transaction.
            ``unfenced``: TxnOffsetCommit does not say it, so that a member that has lost its partitions still commits
            for them, and OffsetFetch answers with what was committed before an open transaction (Kafka < 2.5).
            ``fenced``: by generation and member id, and OffsetFetch can have a consumer wait for the end of the
            transaction (KIP-447, Kafka 2.5).
        consumer_protocol: whether coordinators offer the group protocol of KIP-848, in which they assign the partitions
            (Kafka 4.0), beside the classic one, in which a member does.
        producers_without_records: what a leader makes of a producer whose records have all been deleted. It forgets it
            with the last of them, and refuses what is not its first batch, as ``out_of_order`` (Kafka 0.11) or as that
            of an ``unknown`` producer, so that a client that knows better can begin anew (Kafka 1.0). Or it is ``kept``
            for ``producer.id.expiration.ms``; and of a producer that is not known any batch is taken (KAFKA-7190 in
            Kafka 2.4, KIP-360 in 2.5).
        batches_remembered: by which batches of a producer a leader detects that another one is repeated: the ``last``
            one, so that a producer may have one in flight (Kafka 0.11), or the last ``five`` (KAFKA-5494, Kafka 1.0).
        bugs: the names in :data:`harness.replication.bugs.BUGS` that are switched on, which no Kafka has.
    """

    truncation: Literal[
        "hw", "leader_hw", "hw_after_first_fetch", "epoch_offset", "epoch_pair", "diverging_fetch"
    ] = "diverging_fetch"  # fmt: skip
    lookup_below_first: Literal["undefined", "start_of_first"] = "start_of_first"
    epoch_entry: Literal["first_append", "on_election"] = "on_election"
    truncate_when: Literal["leader_id_changed", "epoch_gap", "every_epoch"] = "every_epoch"
    reelected_leader: Literal["keeps", "forgets"] = "keeps"
    fetch_fencing: bool = True
    lookup_fencing: bool = True
    isr_join: Literal["hw", "hw_and_epoch_start"] = "hw_and_epoch_start"
    broker_epoch_check: bool = True
    fenced_replicas_join: bool = False
    isr_update: Literal["synchronous", "maximal", "naive"] = "maximal"
    hw_in_fetch_response: Literal["pre_update", "post_update"] = "pre_update"
    hw_advance: Literal["on_fetch", "after_followers"] = "on_fetch"
    hw_rule: Literal["max_of_min", "min_of_all"] = "max_of_min"
    follower_hw_rule: Literal["leader", "own"] = "leader"
    hw_waits_for: Literal["isr_and_caught_up", "isr"] = "isr_and_caught_up"
    newcomers: Literal["anybody", "eligible"] = "eligible"
    in_sync_at_the_end: bool = True
    hw_below_min_isr: Literal["advance", "freeze"] = "freeze"
    out_of_range: Literal["wipe", "exit", "lenient"] = "lenient"
    deletion_answered: Literal["at_once", "when_followed"] = "when_followed"
    straddled_batch: Literal["refused", "cut"] = "refused"
    elections: Literal["isr", "elr"] = "elr"
    last_isr_member: Literal["stays", "leaves_if_unclean"] = "stays"
    broker_bounce: Literal["unnoticed", "noticed", "refused"] = "refused"
    shrink_raises_epoch: bool = False
    diverging_fetch_is_progress: bool = False
    stale_truncation_applied: bool = False
    hw_from_diverging: bool = False
    spurious_out_of_range: bool = False
    empty_isr_retry: bool = False
    controller_epoch_fencing: bool = True
    disk_full: Literal["halt_broker", "offline_dir"] = "offline_dir"
    recreated_elsewhere: bool = False
    placing_forgets_eligible: bool = False
    clean_shutdown_marker: Literal["removed_first", "removed_late", "kept", "none"] = "removed_first"
    recovered_tail: Literal["left", "not_flushed", "flushed"] = "left"
    lowered_log_start: Literal["unwritten", "written"] = "unwritten"
    emptied_log_epoch: Literal["forgotten", "kept"] = "forgotten"
    segment_names: Literal["flushed", "not_flushed"] = "flushed"
    transactions: Literal["none", "unverified", "verified", "numbered"] = "numbered"
    transactional_offsets: Literal["unfenced", "fenced"] = "fenced"
    consumer_protocol: bool = True
    producers_without_records: Literal["out_of_order", "unknown", "kept"] = "kept"
    batches_remembered: Literal["last", "five"] = "five"
    offset_expiry: Literal["after_commit", "after_empty"] = "after_empty"
    tombstones: Literal["segment_age", "delete_horizon"] = "delete_horizon"
    topic_identity: Literal["name", "id"] = "id"
    bugs: tuple[str, ...] = ()


NEWEST = Knobs()


def _generations() -> dict[str, Knobs]:
    """Each generation by its difference from the next one, newest first."""
    elr = NEWEST
    strict = replace(elr, elections="isr", transactions="verified", consumer_protocol=False)
    fetch = replace(
        strict,
        hw_below_min_isr="advance",
        newcomers="anybody",
        broker_epoch_check=False,
        fenced_replicas_join=True,
        broker_bounce="noticed",
        shrink_raises_epoch=True,
        segment_names="not_flushed",
        tombstones="segment_age",
        topic_identity="name",
        transactions="unverified",
    )
    kip320 = replace(
        fetch,
        truncation="epoch_pair",
        isr_update="synchronous",
        broker_bounce="unnoticed",
        clean_shutdown_marker="removed_late",
        recovered_tail="not_flushed",
        transactional_offsets="unfenced",
        producers_without_records="unknown",
    )
    kip279_mended = replace(
        kip320,
        fetch_fencing=False,
        lookup_fencing=False,
        truncate_when="epoch_gap",
        in_sync_at_the_end=False,
        offset_expiry="after_commit",
    )
    kip279 = replace(
        kip279_mended,
        lookup_below_first="undefined",
        epoch_entry="first_append",
        truncate_when="leader_id_changed",
        isr_join="hw",
        out_of_range="exit",
    )
    kip101 = replace(
        kip279,
        truncation="epoch_offset",
        disk_full="halt_broker",
        last_isr_member="leaves_if_unclean",
        producers_without_records="out_of_order",
        batches_remembered="last",
    )
    watermark = replace(kip101, truncation="hw", deletion_answered="at_once", transactions="none")
    oldest_first = (watermark, kip101, kip279, kip279_mended, kip320, fetch, strict, elr)
    return dict(zip(("0.10", "0.11", "2.0.0", "2.0.1", "2.1", "2.8", "3.7", "4.1"), oldest_first, strict=True))


GENERATIONS: Mapping[str, Knobs] = MappingProxyType(_generations())
"""Oldest first."""

CURRENT_GENERATION = "4.1"

REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        "reelected_leader": "forgets",
        "straddled_batch": "cut",
        "lowered_log_start": "written",
        "emptied_log_epoch": "kept",
    }
)
"""Knob values that no generation has, and that fix a flaw of all of them."""


def generation(name: str, overrides: Mapping[str, str] = MappingProxyType({})) -> Knobs:
    """The knobs of generation ``name``, with single knobs overridden (``{"truncation": "hw"}``).

    Raises:
        UsageError: no such generation, knob or value.
    """
    try:
        knobs = GENERATIONS[name]
    except KeyError:
        raise UsageError(f"generation {name!r} is not known.", f"Choose one of {', '.join(GENERATIONS)}.") from None
    changed: dict[str, Any] = {knob: _value(knob, text) for knob, text in overrides.items()}
    return replace(knobs, **changed)


def _value(knob: str, text: str) -> str | bool | tuple[str, ...]:
    if knob == "bugs":
        return _bugs(text)
    hints = get_type_hints(Knobs)
    if knob not in hints:
        raise UsageError(
            f"replication knob {knob!r} is not known.", f"Knobs: {', '.join(f.name for f in fields(Knobs))}."
        )
    allowed: tuple[str, ...] = ("true", "false") if hints[knob] is bool else get_args(hints[knob])
    if text not in allowed:
        raise UsageError(f"replication knob {knob}: {text!r} is not a value.", f"Values: {', '.join(allowed)}.")
    return text == "true" if hints[knob] is bool else text


def _bugs(text: str) -> tuple[str, ...]:
    """``ack_on_append,torn_append_kept`` in the order of the table."""
    wanted = {name for name in text.split(",") if name}
    for name in sorted(wanted - set(BUGS)):
        raise UsageError(f"replication knob bugs: {name!r} is not known; {closest(name, BUGS)}")
    return tuple(name for name in BUGS if name in wanted)


def written(value: object) -> str:
    """The value of a knob, as :func:`generation` and ``--set`` take it."""
    if isinstance(value, tuple):
        return ",".join(value)
    return as_text(value)
