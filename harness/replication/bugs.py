"""Lists the switchable bugs of broken brokers and controllers, each at one place in the code.

They measure whether the checkers detect them; see :mod:`harness.detection`. No generation has any of them:
``Knobs.bugs`` names those that are switched on, as ``--set replication.bugs=ack_on_append`` does. A replica or
controller with a bug does not check its own invariants, so that the checkers have to find it by its evidence.

A new one is a record here, in the group of what it breaks, and its defect at one place in the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from harness.model import CORE, STACK


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug: a row of the detection matrix.

    Attributes:
        name: of the row.
        idea: the KIP, the issue or the thought behind it.
        does: what the broken broker does, in a sentence.
        depth: where it can be seen: on the bare core, on the whole broker, or in made-up histories alone.
        knobs: what switches it on, as ``--set replication.<knob>=<value>`` does; empty: a made-up history.
        unnoticed: why it may go unnoticed, in a sentence.
        scenarios: the schedules that are made for it, or for what it breaks.
        load: the random load that reaches it, where that is one of its own; empty: every other load of its depth does.
    """

    name: str
    idea: str
    does: str
    depth: str = CORE
    knobs: Mapping[str, str] = field(default_factory=dict)
    unnoticed: str = ""
    scenarios: tuple[str, ...] = ()
    load: str = ""


def _bug(
    name: str, idea: str, does: str, depth: str = CORE, *, unnoticed: str = "", scenarios: tuple[str, ...] = ()
) -> Bug:
    return Bug(name, idea, does, depth, {"bugs": name}, unnoticed, scenarios)


def _of_numbered(name: str, idea: str, does: str, *, scenarios: tuple[str, ...]) -> Bug:
    return Bug(name, idea, does, STACK, {"bugs": name}, scenarios=scenarios, load="pipelined")


def _of_groups(name: str, idea: str, does: str, *, scenarios: tuple[str, ...] = (), load: str = "groups") -> Bug:
    return Bug(name, idea, does, STACK, {"bugs": name}, scenarios=scenarios, load=load)


def _of_transactions(name: str, idea: str, does: str, *, scenarios: tuple[str, ...] = ()) -> Bug:
    return Bug(name, idea, does, STACK, {"bugs": name}, scenarios=scenarios, load="transactions")


def _of_processors(name: str, idea: str, does: str) -> Bug:
    return Bug(name, idea, does, STACK, {"bugs": name}, load="processors")


def _of_compaction(name: str, idea: str, does: str, unnoticed: str = "") -> Bug:
    return Bug(name, idea, does, STACK, {"bugs": name}, unnoticed, load="compaction")


ACKNOWLEDGING = (
    _bug("ack_on_append", "acknowledge before the ISR has it",
         "A leader acknowledges acks=all as soon as the records are in its own log."),
    _bug("timeout_answered_as_ok", "an expired request answered with the success of its append",
         "A leader acknowledges what it has waited for in vain."),
    _bug("timeout_answered_as_refused", "REQUEST_TIMED_OUT mistaken for NOT_ENOUGH_REPLICAS",
         "A leader says that it has refused what it has appended and waited for in vain."),
    _bug("acks_all_unanswered", "a purgatory that nothing is completed in after an election",
         "A leader of a later epoch than the first never answers acks=all.", STACK),
    _bug("min_isr_unchecked", "KIP-16's min.insync.replicas forgotten",
         "A leader takes acks=all, and commits, however few replicas are in sync."),
    _bug("min_isr_unchecked_at_append", "KIP-16's check left to the acknowledgement",
         "A leader appends acks=all although fewer replicas than min.insync.replicas are in sync, and acknowledges "
         "it once there are enough."),
    _bug("acks_1_not_appended", "an acknowledgement that waits for nothing",
         "A leader acknowledges one request in 16 with acks=1 and appends nothing.",
         scenarios=("kept-by-a-leader-that-leads-on",)),
    _bug("stamps_previous_epoch", "partitionLeaderEpoch set before the epoch is",
         "A leader appends records with the leader epoch before its own."),
    _bug("sound_batch_refused", "a check of requests that is too strict",
         "A leader refuses one batch in 16 as invalid."),
)  # fmt: skip

WATERMARKS = (
    _bug("watermark_ignores_the_slowest", "a quorum instead of the ISR",
         "The watermark waits for all of the ISR but the slowest member."),
    _bug("silent_followers_count", "an unknown log end read as a caught-up one",
         "A new leader takes a follower that has not fetched yet for one that has everything."),
    _bug("commits_all_when_elected", "the log end for the checkpoint in makeLeader",
         "A new leader takes everything in its log for committed."),
    _bug("watermark_falls", "the leader's max() forgotten",
         "A leader's watermark is the least log end of the ISR, even if that is lower than before."),
    _bug("watermark_min_max_swapped", "min and max swapped",
         "A follower's watermark is the greater of the leader's and its own log end."),
    _bug("follower_watermark_falls", "two offsets of a fetch response swapped",
         "A follower with uncommitted records takes its log start for its high watermark."),
    _bug("watermark_is_the_end_at_start", "the checkpoint of the watermark written before the data counts",
         "A broker that starts believes everything in its log to be committed."),
    _bug("reads_above_the_watermark", "read_uncommitted to the log end",
         "A leader gives consumers whatever is in its log."),
)  # fmt: skip

IN_SYNC = (
    _bug("isr_joined_early", "the condition of Partition.maybeExpandIsr forgotten",
         "A leader proposes every follower that fetches, however far behind it is."),
    _bug("isr_shrunk_alone", "an ISR change that is not waited for",
         "A leader no longer waits for a lagging member, and does not tell the controller."),
    _bug("isr_never_shrunk", "the ISR expiration thread died",
         "A leader never proposes to drop a member that lags.",
         unnoticed="a replica that stands still while its session lives is soon moving again in the random mixes",
         scenarios=("a-laggard-with-a-session",)),
    _bug("frozen_at_min_isr", "KAFKA-15583 off by one",
         "A leader commits nothing while exactly min.insync.replicas are in sync.",
         unnoticed="no broker is away for long enough in the random mixes", scenarios=("committed-by-two-of-three",)),
    _bug("isr_never_grown", "Partition.maybeExpandIsr never called",
         "A leader never proposes to take a follower back into the ISR."),
)  # fmt: skip

FOLLOWING = (
    _bug("divergence_unnoticed", "KIP-595 without the comparison of epochs",
         "A leader never says that a follower's log differs from its own.", scenarios=("tail-of-another-cluster",)),
    _bug("stale_fetch_applied", "a response that has outlived its question",
         "A follower appends what it had asked an earlier leader for, if it fits its log's end.",
         unnoticed="what it brings the new leader mostly has, too, and if not, the next fetch finds that out"),
    _bug("truncates_one_more", "an off-by-one in truncateTo",
         "A follower that cuts its log cuts one record more than it should."),
    _bug("cut_ends_the_broker", "a halt where an exception would do",
         "A broker whose replica has to be cut ends itself.", STACK),
    _bug("epochs_not_truncated", "the leader epoch cache out of step with the log",
         "A follower cuts its log, and not the list of its leader epochs."),
)  # fmt: skip

DELETING = (
    _bug("retention_above_the_watermark", "KIP-107's bound forgotten",
         "Retention deletes records that are not committed yet."),
    _bug("deletes_above_the_watermark", "KIP-107's bound forgotten",
         "DeleteRecords deletes records that are not committed yet.",
         unnoticed="only its own schedule asks a leader to delete the records at the very end of its log",
         scenarios=("deleted-before-it-is-committed",)),
    _bug("deletes_one_more", "an off-by-one in KIP-107",
         "DeleteRecords deletes one record more than it is asked to.", STACK,
         unnoticed="the random mixes delete nothing on request", scenarios=("deleted-up-to-an-offset",)),
    _bug("deletes_nothing", "KIP-107 answered before it is done",
         "DeleteRecords says that it has deleted, and deletes nothing.", STACK,
         unnoticed="the random mixes delete nothing on request", scenarios=("deleted-up-to-an-offset",)),
    _bug("deletion_unanswered", "KIP-107's purgatory never asked",
         "A leader that deletes what DeleteRecords asks for never answers."),
    _bug("deletes_a_segment_more", "an off-by-one in deleteOldSegments",
         "A broker that deletes the segments below its log's start deletes one too many.", STACK,
         unnoticed="the random mixes delete nothing on request", scenarios=("deleted-within-a-segment",)),
    _bug("retention_in_seconds", "a unit of time mistaken for another",
         "Retention deletes what is a thousandth of log.retention.ms old.", STACK,
         unnoticed="the random mixes have Kafka's own limit of seven days", scenarios=("an-hour-is-no-second",)),
    _bug("log_start_not_followed", "KIP-107's log start not propagated",
         "A follower keeps what its leader has deleted."),
)  # fmt: skip

CONTROLLER = (
    _bug("leader_epoch_not_raised", "the epoch raised in memory only",
         "The controller elects another leader in the same leader epoch."),
    _bug("anybody_elected", "an unclean election that the configuration forbids",
         "The controller elects the first replica that is alive, in sync or not."),
    _bug("unclean_called_clean", "the same, and a log that lies", "The same, and records the election as clean."),
    _bug("unclean_shutdown_unnoticed", "KIP-966's clean shutdown file forgotten",
         "The controller trusts a broker's log after an unclean shutdown as before.",
         scenarios=("last-replica-loses-page-cache",)),
    _bug("isr_change_unchecked", "AlterPartition without a version check",
         "The controller adopts any ISR that any leader, also a deposed one, proposes."),
    _bug("ended_session_ignored", "a broker's failure recorded, and its partitions not elected anew",
         "The controller leaves the brokers whose sessions end in office and in the ISR."),
    _bug("first_isr_is_the_leader", "the ISR of a new partition filled by who fetches, and not by assignment",
         "The controller begins a partition with its leader alone in the ISR."),
    _bug("controller_epoch_not_raised", "a controller epoch that is written down and not raised at a start",
         "A controller that starts again goes on in its old controller epoch."),
    _bug("eligible_forgotten_at_start", "KIP-966's eligible leader replicas kept in memory only",
         "A controller that starts again does not remember who is eligible.",
         unnoticed="a controller has to start again while the ISR is below min.insync.replicas",
         scenarios=("eligible-through-a-restart",)),
    _bug("state_written_late", "act, then persist",
         "The controller writes down the state before the one that it acts on."),
)  # fmt: skip

STORAGE = (
    _bug("flush_forgotten", "acknowledge before flush",
         "A broker that is configured to flush every record does not.",
         scenarios=("all-page-caches-lost-but-flushed",)),
    _bug("watermark_beyond_the_end", "min() forgotten",
         "A follower takes the leader's watermark although its own log ends before it.", STACK),
    _bug("torn_append_kept", "a partial write taken for a whole one",
         "A broker whose disk is full acknowledges what it could write only in part.", STACK,
         unnoticed="what one broker has in part only it fetches again after its next start, for the others have it"),
    _bug("cut_segments_stay", "a file that cannot be removed (KAFKA-1194), unnoticed",
         "A broker that cuts whole segments off its log leaves their files where they are.", STACK,
         unnoticed="what is cut is mostly less than a segment", scenarios=("cut-at-the-start-of-a-segment",)),
    _bug("follower_skips_crc", "no checksum on the replication path",
         "A follower appends what it has fetched without looking at the checksum.", STACK,
         unnoticed="a leader would have to serve a damaged batch", scenarios=("copied-from-a-rotten-log",)),
    _bug("follower_leaves_a_gap", "an off-by-one on the replication path",
         "A follower leaves out the first of several batches that it has fetched.", STACK),
    _bug("recovery_skips_crc", "no checksum at recovery",
         "A broker that recovers its log after a crash does not look at checksums.", STACK,
         scenarios=("corrupt-tail-follower",)),
    _bug("recovery_drops_a_batch", "an off-by-one at recovery",
         "A broker that recovers its log after a crash cuts one sound batch too many.", STACK,
         unnoticed="what one broker drops it fetches again, for the others have it",
         scenarios=("full-disks-no-unclean-election", "sole-isr-member-dies-offline")),
    _bug("log_dropped_at_start", "a first segment expected at offset 0",
         "A broker that starts drops a log whose first segment does not begin at offset 0.", STACK,
         unnoticed="the random mixes delete nothing on request", scenarios=("started-again-after-a-deletion",)),
    _bug("unreadable_acknowledged", "LogValidator left out",
         "A leader acknowledges one batch in 16 whose records no consumer can parse.", STACK),
    _bug("garbled_before_crc", "memory corruption before the checksum",
         "A leader damages one record in 16 before it computes the checksum.", STACK),
    _bug("key_garbled_before_crc", "a buffer of a key that is used again too early",
         "The same, of the record's key.", STACK),
    _bug("header_garbled_before_crc", "records that are rewritten before the checksum",
         "The same, of a header of the record.", STACK),
    _bug("timestamp_garbled_before_crc", "a delta that is added to the wrong base",
         "The same, of the record's CreateTime.", STACK),
    _bug("follower_drops_headers", "records that are rewritten on the replication path",
         "A follower takes the headers off one record of each batch, and mends the checksum.", STACK),
)  # fmt: skip

SERVING = (
    _bug("fetch_skips_a_batch", "an off-by-one in the offset index",
         "A leader leaves out the first batch of every 16th answer to a consumer.", STACK),
    _bug("fetch_repeats_a_batch", "an off-by-one the other way",
         "A leader begins every 16th answer to a consumer one batch too early.", STACK,
         unnoticed="the protocol lets a leader send what lies before the offset asked for, and clients leave it out"),
    _bug("fetch_stops_short", "an index that is not extended any more",
         "A leader gives a consumer nothing from offset 40 on.", STACK),
    _bug("consumer_refused_at_the_end", "KAFKA-9543, the end of a segment taken for that of the log",
         "A leader answers a consumer at the end of its log with OFFSET_OUT_OF_RANGE, every 16th time.", STACK),
    Bug("lookup_is_strict", "a binary search of the time index that is off by one",
        "A leader answers a lookup by time with the first record that is younger, and not as young.", STACK,
        {"bugs": "lookup_is_strict"}, load="lookups"),
    _bug("fetch_loses_a_batch", "a response cut and glued together",
         "A leader leaves out the second of several batches that it gives a consumer.", STACK),
    _bug("fetch_swaps_batches", "responses put together by several threads",
         "A leader gives a consumer the last two of several batches in the wrong order.", STACK,
         scenarios=("more-than-one-poll-takes",)),
    _bug("fetch_garbles_a_key", "records that are rewritten on their way to a consumer",
         "A leader gives a consumer another key in every 16th answer, and mends the checksum.", STACK),
    _bug("fetch_drops_headers", "down-conversion to message format v1",
         "A leader gives a consumer a record without headers in every 16th answer.", STACK),
    _bug("fetch_stamps_records", "KIP-32's timestamp type mistaken",
         "A leader gives a consumer LogAppendTime for CreateTime in every 16th answer.", STACK),
    _bug("fetch_repeats_contents", "an answer built from the wrong buffer",
         "A leader gives consumers the batch before in place of some batches of an answer.", STACK),
    _bug("fetch_misstates_epochs", "KIP-320's epoch taken from the leader, and not from the batch",
         "A leader names the leader epoch beside the right one for some batches of an answer.", STACK),
    _bug("tailing_fetch_misstates_epochs", "the same, in the path of what is in memory",
         "The same, only where an answer is one batch: to who reads at the log's end.", STACK),
    _bug("fetch_epochs_unchecked", "KIP-320 for followers alone",
         "A leader answers consumers whatever leader epoch they name.", STACK,
         unnoticed="a consumer has to miss that its leader is in another epoch now", scenarios=("given-up-and-late",)),
    _bug("fetch_mixes_partitions", "a buffer given to the wrong partition",
         "A leader gives every 16th consumer's fetch what another partition has there.", STACK),
    _of_numbered("sequence_unchecked", "KIP-98 without its check",
                 "A leader appends an idempotent producer's batch whatever its sequence number.",
                 scenarios=("lost-ack-and-retried-idempotent", "two-in-flight-idempotent")),
    _of_numbered("sequence_expected_again", "KIP-98's next sequence number, one too low",
                 "A leader expects the last sequence number of an idempotent producer once more.",
                 scenarios=("a-numbered-load",)),
    _bug("batch_appended_twice", "an append that is repeated after it has succeeded",
         "A leader appends one batch in 16 twice.", STACK),
    _of_numbered("producers_forgotten", "producer state not rebuilt on election",
                 "A new leader knows nothing of the idempotent producers in its log.",
                 scenarios=("retried-at-the-next-leader",)),
    _of_numbered("producer_epochs_unfenced", "KIP-98 without fencing, KIP-360",
                 "A leader appends a batch of an older epoch of its producer.",
                 scenarios=("given-up-and-late",)),
)  # fmt: skip

GROUPS = (
    _of_groups("commit_forgotten", "a coordinator that does not wait for its own log",
               "A coordinator acknowledges what a group commits, and stores nothing of it.",
               scenarios=("where-a-group-goes-on",)),
    _of_groups("commits_swapped", "answers, or offsets, put together in another order",
               "A coordinator stores the offsets of one commit in the wrong order of its partitions.",
               scenarios=("where-a-group-goes-on",)),
    _of_groups("commits_unfenced", "UNKNOWN_MEMBER_ID and ILLEGAL_GENERATION forgotten at OffsetCommit",
               "A coordinator stores what is committed for a group, whether or not its sender is a member."),
    _of_groups("refused_commits_stored", "a fence that is in the answer alone",
               "A coordinator stores what it refuses to commit for who is no member of the generation."),
    _of_groups("assignments_mixed_up", "SyncGroup answered with the assignment of another member",
               "A coordinator gives every member the partitions of the group's leader."),
    _of_groups("rebalance_cut_short", "a rebalance that is timed by another timeout than the members'",
               "A coordinator waits a tenth of their rebalance timeout for members to join again."),
    _of_groups("joins_unanswered_after_a_failover", "a purgatory that nothing is completed in after an election",
               "A coordinator that has taken a group over answers no member that joins it."),
    _of_groups("partitions_given_before_release", "KIP-848 without its reconciliation",
               "A coordinator gives a member partitions that another one has not given up yet.", load="assigned"),
    _of_groups("stale_member_epochs_obeyed", "KIP-848, STALE_MEMBER_EPOCH and UNKNOWN_MEMBER_ID forgotten",
               "A coordinator stores what a member commits whose epoch is over, or that was removed.", load="assigned"),
    _of_groups("first_fetch_skips_a_batch", "a fetch session that begins behind the offset that it was asked for",
               "A leader leaves out a batch in its first answer over a connection, unless it begins its log."),
)  # fmt: skip

TRANSACTIONS = (
    _of_transactions("stable_offset_too_high", "KIP-98, the LSO",
                     "A leader gives consumers of committed records those of transactions that are still open."),
    _of_transactions("aborted_unlisted", "KIP-98, the index of aborted transactions",
                     "A leader does not list the aborted transactions for consumers of committed records."),
    _of_transactions("aborted_marked_committed", "two coordinators",
                     "A leader writes the marker of a commit for an aborted transaction, one in three."),
    _of_transactions("committed_marked_aborted", "two coordinators",
                     "A leader writes the marker of an abort for a committed transaction, one in three."),
    _of_transactions("marker_lost", "KIP-98, WriteTxnMarkers",
                     "A leader says that it has written a marker, and has not, one in 16."),
    _of_transactions("leaderless_unmarked", "Kafka 4.3 and 4.4, `TransactionMarkerChannelManager`",
                     "A coordinator takes a partition without a leader for one that was deleted, without a marker.",
                     scenarios=("leaderless-partition-gets-its-marker",)),
    _of_transactions("zombies_obeyed", "KIP-98, zombie fencing",
                     "A coordinator ends the transaction of a transactional id for a producer that was replaced."),
    _of_transactions("transaction_end_unstored", "a coordinator that does not wait for its own log",
                     "A coordinator says that a transaction is committed, and forgets it, one in 16."),
    _of_transactions("transactions_share_an_epoch", "KIP-890, the epoch of the answer to EndTxn",
                     "A coordinator ends a transaction of version 2, and gives its producer no new epoch."),
)  # fmt: skip

COMPACTING = (
    _of_compaction("cleaner_drops_the_last_value", "an off-by-one in the map of offsets",
                   "The log cleaner removes the last value of each key that it finds in the dirty part of a log."),
    _of_compaction("followers_drop_the_last_value", "a cleaner whose map of offsets is another one on followers",
                   "The log cleaner of a follower removes the last value of each key that it finds in the dirty part."),
    _of_compaction("cleaner_drops_tombstones", "`delete.retention.ms` forgotten, KIP-534",
                   "The log cleaner removes tombstones in the first pass that meets them."),
    _of_compaction("tombstones_supersede_nothing", "a map of offsets of records that have a value",
                   "The log cleaner leaves older values of a key beside its tombstone, and later removes that one."),
    _of_compaction("cleans_above_the_watermark", "`firstUnstableOffset` left out of the bounds of a pass",
                   "The log cleaner compacts what is not below the high watermark, too.",
                   "what lies there is rarely a key's last record but one, and a later election has to lose it"),
    _of_compaction("segments_named_late", "a swap without `.swap`: old segments removed before the new one is named",
                   "The log cleaner names what it has written a while after it has removed the old segments."),
)  # fmt: skip

PROCESSING = (
    _of_processors("unstable_offsets_served", "KIP-447, UNSTABLE_OFFSET_COMMIT forgotten",
                   "A coordinator answers what a group has committed although an open transaction may change it."),
    _of_processors("txn_commits_unfenced", "KIP-447, ILLEGAL_GENERATION forgotten at TxnOffsetCommit",
                   "A coordinator stores what is committed in a transaction, whether or not its sender is a member."),
)  # fmt: skip

BUGS: Mapping[str, Bug] = MappingProxyType(
    {
        bug.name: bug
        for bug in (
            *ACKNOWLEDGING, *WATERMARKS, *IN_SYNC, *FOLLOWING, *DELETING, *CONTROLLER, *STORAGE, *SERVING, *GROUPS,
            *TRANSACTIONS, *COMPACTING, *PROCESSING,
        )
    }
)  # fmt: skip
"""Every switchable bug by its name, in the order in which ``Knobs.bugs`` names several."""
