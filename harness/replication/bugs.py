"""Lists the switchable bugs of broken brokers and controllers, each at one place in the code.

They measure whether the checkers detect them; see :mod:`harness.detection`. No generation has any of them:
``Knobs.bugs`` names those that are switched on, as ``--set replication.bugs=ack_on_append`` does. A replica or
controller with a bug does not check its own invariants, so that the checkers have to find it by its evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

BUGS: Mapping[str, str] = MappingProxyType(
    {
        # ------------------------------------------------------------------------------------- acknowledging
        "ack_on_append": "A leader acknowledges acks=all as soon as the records are in its own log.",
        "timeout_answered_as_ok": "A leader acknowledges what it has waited for in vain.",
        "timeout_answered_as_refused": "A leader says that it has refused what it has appended and waited for in vain.",
        "acks_all_unanswered": "A leader of a later epoch than the first never answers acks=all.",
        "min_isr_unchecked": "A leader takes acks=all, and commits, however few replicas are in sync.",
        "min_isr_unchecked_at_append": "A leader appends acks=all although fewer replicas than min.insync.replicas are "
        "in sync, and acknowledges it once there are enough.",
        "batch_appended_twice": "A leader appends one batch in 16 twice.",
        "acks_1_not_appended": "A leader acknowledges one request in 16 with acks=1 and appends nothing.",
        "stamps_previous_epoch": "A leader appends records with the leader epoch before its own.",
        "sound_batch_refused": "A leader refuses one batch in 16 as invalid.",
        # ------------------------------------------------------------------------------------- watermarks
        "watermark_ignores_the_slowest": "The watermark waits for all of the ISR but the slowest member.",
        "silent_followers_count": "A new leader takes a follower that has not fetched yet for one that has everything.",
        "commits_all_when_elected": "A new leader takes everything in its log for committed.",
        "watermark_falls": "A leader's watermark is the least log end of the ISR, even if that is lower than before.",
        "watermark_min_max_swapped": "A follower's watermark is the greater of the leader's and its own log end.",
        "follower_watermark_falls": "A follower with uncommitted records takes its log start for its high watermark.",
        "watermark_beyond_the_end": "A follower takes the leader's watermark although its own log ends before it.",
        "watermark_is_the_end_at_start": "A broker that starts believes everything in its log to be committed.",
        "reads_above_the_watermark": "A leader gives consumers whatever is in its log.",
        # ------------------------------------------------------------------------------------- the in-sync set
        "isr_joined_early": "A leader proposes every follower that fetches, however far behind it is.",
        "isr_shrunk_alone": "A leader no longer waits for a lagging member, and does not tell the controller.",
        "frozen_at_min_isr": "A leader commits nothing while exactly min.insync.replicas are in sync.",
        "isr_never_shrunk": "A leader never proposes to drop a member that lags.",
        "isr_never_grown": "A leader never proposes to take a follower back into the ISR.",
        # ------------------------------------------------------------------------------------- following
        "divergence_unnoticed": "A leader never says that a follower's log differs from its own.",
        "stale_fetch_applied": "A follower appends what it had asked an earlier leader for, if it fits its log's end.",
        "truncates_one_more": "A follower that cuts its log cuts one record more than it should.",
        "cut_ends_the_broker": "A broker whose replica has to be cut ends itself.",
        "epochs_not_truncated": "A follower cuts its log, and not the list of its leader epochs.",
        "log_start_not_followed": "A follower keeps what its leader has deleted.",
        # ------------------------------------------------------------------------------------- deleting
        "retention_above_the_watermark": "Retention deletes records that are not committed yet.",
        "deletes_above_the_watermark": "DeleteRecords deletes records that are not committed yet.",
        "deletes_one_more": "DeleteRecords deletes one record more than it is asked to.",
        "deletes_nothing": "DeleteRecords says that it has deleted, and deletes nothing.",
        "deletion_unanswered": "A leader that deletes what DeleteRecords asks for never answers.",
        "deletes_a_segment_more": "A broker that deletes the segments below its log's start deletes one too many.",
        "retention_in_seconds": "Retention deletes what is a thousandth of log.retention.ms old.",
        # ------------------------------------------------------------------------------------- idempotence
        "sequence_unchecked": "A leader appends an idempotent producer's batch whatever its sequence number.",
        "sequence_expected_again": "A leader expects the last sequence number of an idempotent producer once more.",
        "producers_forgotten": "A new leader knows nothing of the idempotent producers in its log.",
        "producer_epochs_unfenced": "A leader appends a batch of an older epoch of its producer.",
        # ------------------------------------------------------------------------------------- the controller
        "leader_epoch_not_raised": "The controller elects another leader in the same leader epoch.",
        "anybody_elected": "The controller elects the first replica that is alive, in sync or not.",
        "unclean_called_clean": "The same, and records the election as clean.",
        "unclean_shutdown_unnoticed": "The controller trusts a broker's log after an unclean shutdown as before.",
        "isr_change_unchecked": "The controller adopts any ISR that any leader, also a deposed one, proposes.",
        "ended_session_ignored": "The controller leaves the brokers whose sessions end in office and in the ISR.",
        "first_isr_is_the_leader": "The controller begins a partition with its leader alone in the ISR.",
        "controller_epoch_not_raised": "A controller that starts again goes on in its old controller epoch.",
        "eligible_forgotten_at_start": "A controller that starts again does not remember who is eligible.",
        "state_written_late": "The controller writes down the state before the one that it acts on.",
        # ------------------------------------------------------------------------------------- storage
        "flush_forgotten": "A broker that is configured to flush every record does not.",
        "torn_append_kept": "A broker whose disk is full acknowledges what it could write only in part.",
        "cut_segments_stay": "A broker that cuts whole segments off its log leaves their files where they are.",
        "follower_skips_crc": "A follower appends what it has fetched without looking at the checksum.",
        "follower_leaves_a_gap": "A follower leaves out the first of several batches that it has fetched.",
        "recovery_skips_crc": "A broker that recovers its log after a crash does not look at checksums.",
        "recovery_drops_a_batch": "A broker that recovers its log after a crash cuts one sound batch too many.",
        "log_dropped_at_start": "A broker that starts drops a log whose first segment does not begin at offset 0.",
        "unreadable_acknowledged": "A leader acknowledges one batch in 16 whose records no consumer can parse.",
        "garbled_before_crc": "A leader damages one record in 16 before it computes the checksum.",
        "key_garbled_before_crc": "The same, of the record's key.",
        "header_garbled_before_crc": "The same, of a header of the record.",
        "timestamp_garbled_before_crc": "The same, of the record's CreateTime.",
        "follower_drops_headers": "A follower takes the headers off one record of each batch, and mends the checksum.",
        # ------------------------------------------------------------------------------------- serving
        "fetch_skips_a_batch": "A leader leaves out the first batch of every 16th answer to a consumer.",
        "fetch_repeats_a_batch": "A leader begins every 16th answer to a consumer one batch too early.",
        "fetch_loses_a_batch": "A leader leaves out the second of several batches that it gives a consumer.",
        "fetch_swaps_batches": "A leader gives a consumer the last two of several batches in the wrong order.",
        "fetch_garbles_a_key": "A leader gives a consumer another key in every 16th answer, and mends the checksum.",
        "fetch_drops_headers": "A leader gives a consumer a record without headers in every 16th answer.",
        "fetch_stamps_records": "A leader gives a consumer LogAppendTime for CreateTime in every 16th answer.",
        "fetch_repeats_contents": "A leader gives consumers the batch before in place of some batches of an answer.",
        "fetch_misstates_epochs": "A leader names the leader epoch beside the right one for some batches of an answer.",
        "tailing_fetch_misstates_epochs": "The same, only where an answer is one batch: to who reads at the log's end.",
        "fetch_epochs_unchecked": "A leader answers consumers whatever leader epoch they name.",
        "fetch_stops_short": "A leader gives a consumer nothing from offset 40 on.",
        "fetch_mixes_partitions": "A leader gives every 16th consumer's fetch what another partition has there.",
        # ------------------------------------------------------------------------------------- groups
        "commit_forgotten": "The controller acknowledges what a group commits, and keeps nothing of it.",
        "commits_swapped": "The controller keeps the offsets of one commit in the wrong order of its partitions.",
    }
)
"""What each bug does, in a sentence."""
