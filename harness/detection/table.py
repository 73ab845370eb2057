"""The bugs of the matrix: what a broken broker does, how to switch it on, and where it lives.

A new one is a line in :data:`harness.replication.bugs.BUGS`, its defect at one place in the code, and a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.detection.mixes import SYNTHETIC
from harness.errors import UsageError
from harness.replication.bugs import BUGS
from harness.simulation.core.configuration import CORE, STACK
from harness.validation import closest


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug.

    Attributes:
        name: of the row.
        idea: the KIP, the issue or the thought behind it.
        does: what the broken broker does, in a sentence.
        depth: where it can be seen: on the bare core, on the whole broker, or in made-up histories alone.
        knobs: what switches it on, as ``--set replication.<knob>=<value>`` does; empty: a made-up history.
        unnoticed: why it may go unnoticed, in a sentence.
        scenarios: the schedules that are made for it, or for what it breaks.
    """

    name: str
    idea: str
    does: str
    depth: str = CORE
    knobs: Mapping[str, str] = field(default_factory=dict)
    unnoticed: str = ""
    scenarios: tuple[str, ...] = ()


def _switched(name: str, idea: str, depth: str = CORE, unnoticed: str = "", scenarios: tuple[str, ...] = ()) -> Bug:
    return Bug(name, idea, BUGS[name], depth, {"bugs": name}, unnoticed, scenarios)


def _knob(
    name: str,
    idea: str,
    does: str,
    unnoticed: str = "",
    *,
    depth: str = CORE,
    scenarios: tuple[str, ...] = (),
    **knobs: str,
) -> Bug:
    return Bug(name, idea, does, depth, knobs, unnoticed, scenarios)


def _told(name: str, idea: str, does: str) -> Bug:
    return Bug(name, idea, does, SYNTHETIC)


_ACKNOWLEDGING = (
    _switched("ack_on_append", "acknowledge before the ISR has it"),
    _switched("timeout_answered_as_ok", "an expired request answered with the success of its append"),
    _switched("timeout_answered_as_refused", "REQUEST_TIMED_OUT mistaken for NOT_ENOUGH_REPLICAS"),
    _switched("acks_all_unanswered", "a purgatory that nothing is completed in after an election", STACK),
    _switched("min_isr_unchecked", "KIP-16's min.insync.replicas forgotten"),
    _switched("min_isr_unchecked_at_append", "KIP-16's check left to the acknowledgement"),
    _switched("acks_1_not_appended", "an acknowledgement that waits for nothing",
              scenarios=("kept-by-a-leader-that-leads-on",)),
    _switched("stamps_previous_epoch", "partitionLeaderEpoch set before the epoch is"),
    _switched("sound_batch_refused", "a check of requests that is too strict"),
    _knob("min_isr_unchecked_by_the_watermark", "KAFKA-15583",
          "The watermark advances although fewer replicas than min.insync.replicas are in sync.",
          hw_below_min_isr="advance"),
)  # fmt: skip

_WATERMARKS = (
    _switched("watermark_ignores_the_slowest", "a quorum instead of the ISR"),
    _switched("silent_followers_count", "an unknown log end read as a caught-up one"),
    _switched("commits_all_when_elected", "the log end for the checkpoint in makeLeader"),
    _switched("watermark_falls", "the leader's max() forgotten"),
    _switched("watermark_min_max_swapped", "min and max swapped"),
    _switched("follower_watermark_falls", "two offsets of a fetch response swapped"),
    _switched("watermark_is_the_end_at_start", "the checkpoint of the watermark written before the data counts"),
    _switched("reads_above_the_watermark", "read_uncommitted to the log end"),
    _knob("watermark_never_rises", "min of min",
          "A leader's watermark is the least of itself and the log ends, and so never leaves 0.",
          hw_rule="min_of_all"),
    _knob("watermark_ignores_newcomers", "KIP-497",
          "The watermark does not wait for a follower that has caught up and is about to join the ISR.",
          "that it waits lets them catch up sooner, and no more: a follower has to reach the watermark to join anyway",
          hw_waits_for="isr"),
    _knob("isr_change_under_way_ignored", "KIP-497",
          "The watermark does not wait for whom the controller may have added to the ISR already.",
          isr_update="naive"),
    _knob("diverging_watermark_taken", "KAFKA-14704",
          "A follower takes the watermark of an answer that tells it to cut its log.",
          hw_from_diverging="true"),
)  # fmt: skip

_IN_SYNC = (
    _switched("isr_joined_early", "the condition of Partition.maybeExpandIsr forgotten"),
    _switched("isr_shrunk_alone", "an ISR change that is not waited for"),
    _switched("isr_never_shrunk", "the ISR expiration thread died",
              unnoticed="a replica that stands still while its session lives is soon moving again in the random mixes",
              scenarios=("a-laggard-with-a-session",)),
    _switched("frozen_at_min_isr", "KAFKA-15583 off by one",
              unnoticed="no broker is away for long enough in the random mixes",
              scenarios=("committed-by-two-of-three",)),
    _switched("isr_never_grown", "Partition.maybeExpandIsr never called"),
    _knob("isr_joined_at_a_stale_watermark", "KAFKA-7128",
          "A follower joins the ISR that has not reached the start of its leader's epoch.",
          scenarios=("in-sync-at-a-stale-watermark",), isr_join="hw"),
    _knob("stale_isr_change_taken", "KIP-841, KIP-903",
          "Leader and controller take back into the ISR who has restarted, or has no session, since its leader saw it.",
          broker_epoch_check="false", fenced_replicas_join="true", newcomers="anybody"),
    _knob("isr_change_retried_empty", "KAFKA-15353", "An ISR change that is sent again has lost its members.",
          empty_isr_retry="true"),
)  # fmt: skip

_FOLLOWING = (
    _knob("truncates_to_the_watermark", "KIP-101", "A follower cuts its log to its own watermark.", truncation="hw"),
    _knob("epochs_unfenced", "KIP-320", "Leaders answer fetches and lookups of another leader epoch.",
          "fetches carry the follower's last epoch since 2.8, and where logs differ is seen by that",
          scenarios=("missed-epoch-same-leader",), fetch_fencing="false", lookup_fencing="false"),
    _knob("diverging_fetch_is_progress", "KAFKA-13141",
          "A fetch that is answered with where the logs diverge counts as an acknowledgement.",
          "a follower must diverge while the only other one is out of sync",
          scenarios=("diverging-fetch-is-no-acknowledgement",), diverging_fetch_is_progress="true"),
    _knob("stale_truncation_applied", "KAFKA-13207",
          "A replica cuts its log on an answer of a leader that it no longer follows.",
          "an answer must be late by a whole election",
          scenarios=("stale-truncation-is-ignored",), stale_truncation_applied="true"),
    _knob("fetch_at_the_end_is_out_of_range", "KAFKA-2477",
          "The first fetch at the log end after an append is out of range, and its follower deletes its log.",
          spurious_out_of_range="true", out_of_range="wipe"),
    _knob("deposed_controller_obeyed", "controller fencing", "Replicas obey a controller older than one they heard.",
          "what an older controller had said is of older leader and partition epochs, too, and refused for that; it "
          "would take two controllers that decide at once, and here there is one (the schedule "
          "`words-of-a-dead-controller` passes with it, too)",
          controller_epoch_fencing="false"),
    _switched("divergence_unnoticed", "KIP-595 without the comparison of epochs",
              scenarios=("tail-of-another-cluster",)),
    _switched("stale_fetch_applied", "a response that has outlived its question",
              unnoticed="what it brings the new leader mostly has, too, and if not, the next fetch finds that out"),
    _switched("truncates_one_more", "an off-by-one in truncateTo"),
    _switched("cut_ends_the_broker", "a halt where an exception would do", STACK),
    _switched("epochs_not_truncated", "the leader epoch cache out of step with the log"),
)  # fmt: skip

_DELETING = (
    _switched("retention_above_the_watermark", "KIP-107's bound forgotten"),
    _switched("deletes_above_the_watermark", "KIP-107's bound forgotten",
              unnoticed="records at the very end are asked to be deleted by nobody here but in its schedule",
              scenarios=("deleted-before-it-is-committed",)),
    _switched("deletes_one_more", "an off-by-one in KIP-107", STACK, "the random mixes delete nothing on request",
              ("deleted-up-to-an-offset",)),
    _switched("deletes_nothing", "KIP-107 answered before it is done", STACK,
              "the random mixes delete nothing on request", ("deleted-up-to-an-offset",)),
    _switched("deletion_unanswered", "KIP-107's purgatory never asked"),
    _switched("deletes_a_segment_more", "an off-by-one in deleteOldSegments", STACK,
              "the random mixes delete nothing on request", ("deleted-within-a-segment",)),
    _switched("retention_in_seconds", "a unit of time mistaken for another", STACK,
              "the random mixes have Kafka's own limit of seven days", ("an-hour-is-no-second",)),
    _switched("log_start_not_followed", "KIP-107's log start not propagated"),
)  # fmt: skip

_CONTROLLER = (
    _switched("leader_epoch_not_raised", "the epoch raised in memory only"),
    _switched("anybody_elected", "an unclean election that the configuration forbids"),
    _switched("unclean_called_clean", "the same, and a log that lies"),
    _switched("unclean_shutdown_unnoticed", "KIP-966's clean shutdown file forgotten",
              scenarios=("last-replica-loses-page-cache",)),
    _switched("isr_change_unchecked", "AlterPartition without a version check"),
    _switched("ended_session_ignored", "a broker's failure recorded, and its partitions not elected anew"),
    _switched("first_isr_is_the_leader", "the ISR of a new partition filled by who fetches, and not by assignment"),
    _switched("controller_epoch_not_raised", "a controller epoch that is written down and not raised at a start"),
    _switched("eligible_forgotten_at_start", "KIP-966's eligible leader replicas kept in memory only",
              unnoticed="a controller has to start again while the ISR is below min.insync.replicas",
              scenarios=("eligible-through-a-restart",)),
    _switched("state_written_late", "act, then persist"),
    _knob("placing_forgets_eligible", "apache/kafka#20716",
          "When a broker tells in which log directory a replica is, the controller forgets who is eligible to lead.",
          "it takes a replica that is made anew while others are eligible, and the mixes replace no disks",
          depth=STACK, scenarios=("directory-assignment-keeps-elr",), placing_forgets_eligible="true"),
    _knob("last_replica_standing", "KIP-966",
          "The last member of the ISR is elected although it lost power, and with that its tail.",
          scenarios=("corrupt-tail-last-replica",), elections="isr"),
)  # fmt: skip

_STORAGE = (
    _switched("flush_forgotten", "acknowledge before flush", scenarios=("all-page-caches-lost-but-flushed",)),
    _switched("watermark_beyond_the_end", "min() forgotten", STACK),
    _switched("torn_append_kept", "a partial write taken for a whole one", STACK,
              "what one broker has in part only it fetches again after its next start, for the others have it"),
    _switched("cut_segments_stay", "a file that cannot be removed (KAFKA-1194), unnoticed", STACK,
              "what is cut is mostly less than a segment", ("cut-at-the-start-of-a-segment",)),
    _switched("follower_skips_crc", "no checksum on the replication path", STACK,
              "a leader would have to serve a damaged batch", ("copied-from-a-rotten-log",)),
    _switched("follower_leaves_a_gap", "an off-by-one on the replication path", STACK),
    _switched("recovery_skips_crc", "no checksum at recovery", STACK, scenarios=("corrupt-tail-follower",)),
    _switched("recovery_drops_a_batch", "an off-by-one at recovery", STACK,
              "what one broker drops it fetches again, for the others have it",
              ("full-disks-no-unclean-election", "sole-isr-member-dies-offline")),
    _switched("log_dropped_at_start", "a first segment expected at offset 0", STACK,
              "the random mixes delete nothing on request", ("started-again-after-a-deletion",)),
    _switched("unreadable_acknowledged", "LogValidator left out", STACK),
    _switched("garbled_before_crc", "memory corruption before the checksum", STACK),
    _switched("key_garbled_before_crc", "a buffer of a key that is used again too early", STACK),
    _switched("header_garbled_before_crc", "records that are rewritten before the checksum", STACK),
    _switched("timestamp_garbled_before_crc", "a delta that is added to the wrong base", STACK),
    _switched("follower_drops_headers", "records that are rewritten on the replication path", STACK),
    _knob("recovered_tail_not_flushed", "KAFKA-10101",
          "What is found beyond the recovery point after a crash is taken for flushed.",
          "since KIP-966 the log of a crashed broker is not trusted, and the mixes do not flush every record",
          depth=STACK, scenarios=("recovered-tail-not-flushed", "recovered-and-dark"), recovered_tail="not_flushed"),
    _knob("segment_names_not_flushed", "KAFKA-3968", "A new segment's name is not flushed with its content.",
          "since KIP-966 the log of a crashed broker is not trusted, and the mixes do not flush every record",
          depth=STACK, scenarios=("segment-name-not-flushed", "power-lost-behind-a-new-segment"),
          segment_names="not_flushed"),
    _knob("clean_marker_kept", "KAFKA-10471", "The file that says that the last shutdown was clean stays for ever.",
          depth=STACK, scenarios=("crash-while-loading", "torn-tail-behind-clean-marker"),
          clean_shutdown_marker="kept"),
)  # fmt: skip

_SERVING = (
    _switched("fetch_skips_a_batch", "an off-by-one in the offset index", STACK),
    _switched("fetch_repeats_a_batch", "an off-by-one the other way", STACK,
              "the protocol lets a leader send what lies before the offset asked for, and clients leave it out"),
    _switched("fetch_stops_short", "an index that is not extended any more", STACK),
    _switched("fetch_loses_a_batch", "a response cut and glued together", STACK),
    _switched("fetch_swaps_batches", "responses put together by several threads", STACK,
              scenarios=("more-than-one-poll-takes",)),
    _switched("fetch_garbles_a_key", "records that are rewritten on their way to a consumer", STACK),
    _switched("fetch_drops_headers", "down-conversion to message format v1", STACK),
    _switched("fetch_stamps_records", "KIP-32's timestamp type mistaken", STACK),
    _switched("fetch_repeats_contents", "an answer built from the wrong buffer", STACK),
    _switched("fetch_misstates_epochs", "KIP-320's epoch taken from the leader, and not from the batch", STACK),
    _switched("tailing_fetch_misstates_epochs", "the same, in the path of what is in memory", STACK),
    _switched("fetch_epochs_unchecked", "KIP-320 for followers alone", STACK,
              "a consumer has to miss that its leader is in another epoch now",
              scenarios=("given-up-and-late",)),
    _switched("fetch_mixes_partitions", "a buffer given to the wrong partition", STACK),
    _switched("sequence_unchecked", "KIP-98 without its check", STACK,
              "the random mixes have no producers that send again",
              ("lost-ack-and-retried-idempotent", "two-in-flight-idempotent")),
    _switched("sequence_expected_again", "KIP-98's next sequence number, one too low", STACK,
              "the random mixes have no producers that number their batches", ("a-numbered-load",)),
    _switched("batch_appended_twice", "an append that is repeated after it has succeeded", STACK),
    _switched("producers_forgotten", "producer state not rebuilt on election", STACK,
              "the random mixes have no producers that send again", ("retried-at-the-next-leader",)),
    _switched("producer_epochs_unfenced", "KIP-98 without fencing, KIP-360", STACK,
              "the random mixes have no producers that go on in another epoch", ("given-up-and-late",)),
)  # fmt: skip

_GROUPS = (
    _switched("commit_forgotten", "a coordinator that does not wait for its own log", STACK,
              "the random mixes have no groups", ("where-a-group-goes-on",)),
    _switched("commits_swapped", "answers, or offsets, put together in another order", STACK,
              "the random mixes have no groups", ("where-a-group-goes-on",)),
)  # fmt: skip

_MADE_UP = (
    _told("marker_lost", "KIP-98", "The marker of one partition of a committed transaction is never written."),
    _told("stable_offset_too_high", "KIP-98, the LSO", "Consumers are given records of transactions still open."),
    _told("aborted_marked_committed", "two coordinators", "An aborted transaction is given a commit marker."),
    _told("committed_marked_aborted", "two coordinators", "A committed transaction is given one abort marker."),
    _told("own_transaction_read", "KIP-98, the LSO", "A transaction is given the record that it is writing."),
    _told("transactions_read_each_other", "read_committed without a snapshot",
          "Two transactions are each given what the other one writes."),
    _told("transactions_interleave", "zombie fencing by epoch", "Two transactions write around each other."),
    _told("transaction_reordered", "a batch of a transaction overtakes another",
          "The records of one transaction are stored in the wrong order."),
    Bug("commit_of_another_generation", "zombie fencing of consumers",
        "A commit of a member that was thrown out replaces that of its successor.", SYNTHETIC,
        unnoticed="a history does not say of which generation a commit is, and a group may go back"),
    _told("commits_lost_with_the_coordinator", "the log of __consumer_offsets cut", "A group's last commit is gone."),
    _told("commit_beyond_the_log", "a truncation under a consumer", "The log is cut below what a group has committed."),
    _told("retry_appended_again", "KIP-98 without its check",
          "A batch with the same sequence number is appended again."),
    _told("sequence_gap_appended", "KIP-98 without its check",
          "A batch is accepted although one before it is missing."),
    _told("zombie_producer", "KIP-98 without fencing", "A batch of a producer's older epoch is appended."),
    _told("log_of_another_cluster", "a disk mounted at the wrong place",
          "A leader gives consumers records that no client sent in this run."),
    _told("offset_written_twice", "a log that overlaps itself", "A replica's log holds two records at one offset."),
    _told("stale_acknowledgement", "an answer matched with the wrong request",
          "A leader answers a producer with the offset of another producer's record."),
    Bug("consumer_starves", "a fetch that is parked for ever", "Consumers are never given the end of the log.",
        SYNTHETIC, unnoticed="unseen records may be late, so that the run is inconclusive"),
)  # fmt: skip

TABLE: tuple[Bug, ...] = (
    *_ACKNOWLEDGING, *_WATERMARKS, *_IN_SYNC, *_FOLLOWING, *_DELETING, *_CONTROLLER, *_STORAGE, *_SERVING, *_GROUPS,
    *_MADE_UP,
)  # fmt: skip
"""Every bug, in the order in which it is shown."""


def chosen(names: str) -> tuple[Bug, ...]:
    """The bugs of a list of names with commas between; all when it is empty.

    Raises:
        UsageError: one of them is not known.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    known = {bug.name: bug for bug in TABLE}
    for name in wanted:
        if name not in known:
            raise UsageError(f"bug {name!r} is not known; {closest(name, known)}")
    return tuple(bug for bug in TABLE if not wanted or bug.name in wanted)
