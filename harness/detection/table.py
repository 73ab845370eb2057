"""The detection matrix's rows: the switchable bugs, protocol knobs with a known flaw, and made-up histories.

A switchable bug is a record in :mod:`harness.replication.bugs`, and takes no line here. The order of schedules decides
which seeds each gets (:func:`harness.detection.matrix.first_seed`).
"""

from __future__ import annotations

from harness.detection.mixes import SYNTHETIC
from harness.errors import UsageError
from harness.model import CORE, STACK
from harness.replication import bugs
from harness.replication.bugs import Bug
from harness.spelling import closest


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
    *bugs.ACKNOWLEDGING,
    _knob("min_isr_unchecked_by_the_watermark", "KAFKA-15583",
          "The watermark advances although fewer replicas than min.insync.replicas are in sync.",
          hw_below_min_isr="advance"),
)  # fmt: skip

_WATERMARKS = (
    *bugs.WATERMARKS,
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
    *bugs.IN_SYNC,
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
    *bugs.FOLLOWING,
)  # fmt: skip

_CONTROLLER = (
    *bugs.CONTROLLER,
    _knob("placing_forgets_eligible", "apache/kafka#20716",
          "When a broker tells in which log directory a replica is, the controller forgets who is eligible to lead.",
          "it takes a replica that is made anew while others are eligible, and the mixes replace no disks",
          depth=STACK, scenarios=("directory-assignment-keeps-elr",), placing_forgets_eligible="true"),
    _knob("last_replica_standing", "KIP-966",
          "The last member of the ISR is elected although it lost power, and with that its tail.",
          scenarios=("corrupt-tail-last-replica",), elections="isr"),
)  # fmt: skip

_STORAGE = (
    *bugs.STORAGE,
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

_MADE_UP = (
    _told("transactions_interleave", "zombie fencing by epoch", "Two transactions write around each other."),
    _told("transaction_reordered", "a batch of a transaction overtakes another",
          "The records of one transaction are stored in the wrong order."),
    _told("commit_of_another_generation", "zombie fencing of consumers",
          "A commit of a member that was thrown out replaces that of its successor."),
    _told("commits_lost_with_the_coordinator", "the log of __consumer_offsets cut", "A group's last commit is gone."),
    _told("commit_beyond_the_log", "a truncation under a consumer", "The log is cut below what a group has committed."),
    _told("fetched_before_the_rebalance", "fetched records that a client keeps when its partitions are taken away",
          "A member is given records again that lie before what its group has committed."),
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
    *_ACKNOWLEDGING, *_WATERMARKS, *_IN_SYNC, *_FOLLOWING, *bugs.DELETING, *_CONTROLLER, *_STORAGE, *bugs.SERVING,
    *bugs.GROUPS, *bugs.TRANSACTIONS, *bugs.COMPACTING, *bugs.PROCESSING, *_MADE_UP,
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
