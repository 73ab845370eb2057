"""What a broker keeps, flushes, forgets and deletes, in virtual time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.broker.checkpoints import RECOVERY_POINTS, parse_offsets
from harness.broker.log_directory import CLEAN_SHUTDOWN
from harness.broker.settings import NEVER, NodeFaults
from harness.error_codes import ErrorCode
from harness.model import CONTROLLER_ID
from harness.replication.messages import DeleteRecordsRequested
from harness.wire.keys import ApiKey
from harness.wire.messages.offsets import EARLIEST_TIMESTAMP, ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from harness.wire.messages.operators import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tests.harness.broker.raw_client import batch, fetch_request, produce_request
from tests.harness.broker.virtual_cluster import T, VirtualCluster


def cluster_with_topic(knobs: str = "3.7", **settings: Any) -> VirtualCluster:
    cluster = VirtualCluster(knobs, **settings)
    cluster.create_topic()
    return cluster


def bounds(cluster: VirtualCluster, node: int) -> tuple[int, int]:
    log = cluster.brokers[node].partitions[T].log
    return log.log_start_offset, log.log_end_offset


def delete_records(cluster: VirtualCluster, node: int, offset: int, topic: str = "t") -> tuple[int, int]:
    body = DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])], 1000)
    answers = cluster.call(node, ApiKey.DELETE_RECORDS, 2, body)
    cluster.world.sleep(2)
    (answer,) = answers
    (result,) = answer.topics[0].partitions
    return result.error_code, result.low_watermark


def test_a_deletion_waits_for_whoever_has_a_session_and_no_longer_than_it_is_told_to() -> None:
    cluster = cluster_with_topic(broker_session_timeout_ms=5_000)
    cluster.produce(0, b"a")
    cluster.world.sleep(1)
    assert delete_records(cluster, 0, -1) == (0, 1)
    cluster.produce(0, b"b")
    cluster.world.sleep(1)
    cluster.kill(2)
    assert delete_records(cluster, 0, -1) == (ErrorCode.REQUEST_TIMED_OUT, 1)
    assert bounds(cluster, 0) == (2, 2)
    cluster.world.sleep(6)
    cluster.produce(0, b"c")
    cluster.world.sleep(1)
    assert delete_records(cluster, 0, -1) == (0, 3)


def test_a_leader_writes_down_where_its_log_begins_before_a_client_is_told() -> None:
    cluster = cluster_with_topic("0.10")
    cluster.produce(0, b"a")
    cluster.world.sleep(1)
    partition = cluster.brokers[0].partitions[T]
    seen: list[list[str]] = []

    class Told:
        def deleted(self, error: ErrorCode, low_watermark: int) -> None:
            rows = map(json.loads, cluster.node(0).rows)
            seen.append([row["kind"] for row in rows if row["log_start_offset"] == low_watermark])

    partition.handle(DeleteRecordsRequested(Told(), 1, 0))
    assert seen == [["log_start", "state"]]


# ------------------------------------------------------------------------------------------------- flushing


def test_a_power_loss_takes_what_was_not_flushed_and_the_leader_s_copy_replaces_it() -> None:
    cluster = cluster_with_topic()
    assert cluster.produce(0, b"a", acks=1) == [(0, 0)]
    cluster.world.sleep(1)
    cut = cluster.node(2).lose_power()
    assert [one.path for one in cut if one.after_bytes == 0] == ["t-0/00000000000000000000.log"]
    cluster.start(2)
    assert bounds(cluster, 2) == (0, 0)
    cluster.world.sleep(3)
    assert bounds(cluster, 2) == (0, 1)


def test_every_record_can_be_flushed_before_it_is_acknowledged() -> None:
    cluster = cluster_with_topic(log_flush_interval_messages=1)
    cluster.produce(0, b"a", acks=1)
    assert cluster.node(0).lose_power() == []
    cluster.start(0)
    assert bounds(cluster, 0) == (0, 1)


def test_records_can_be_flushed_by_time() -> None:
    cluster = cluster_with_topic(log_flush_interval_ms=500)
    cluster.produce(0, b"a", acks=1)
    cluster.world.sleep(1)
    assert cluster.brokers[0].partitions[T].log.recovery_point == 1
    cluster.node(0).lose_power()
    cluster.start(0)
    assert bounds(cluster, 0) == (0, 1)


def test_recovery_starts_at_the_checkpointed_recovery_point() -> None:
    cluster = cluster_with_topic(log_flush_interval_messages=1, log_flush_offset_checkpoint_interval_ms=1_000)
    cluster.produce(0, b"a", acks=1)
    cluster.world.sleep(2)
    cluster.kill(0)
    assert cluster.disk(0).read_text("recovery-point-offset-checkpoint") == "0\n1\nt 0 1\n"


def overtaken(knobs: str, deleted: int = 0, *, killed: bool = False, **settings: Any) -> VirtualCluster:
    """Broker 0 has stopped, cleanly or not, with four records; broker 1 leads, with another record."""
    never = {"log_flush_offset_checkpoint_interval_ms": NEVER, "unclean_leader_election_enable": True}
    cluster = cluster_with_topic(knobs, **never, **settings)
    cluster.kill(1)
    cluster.kill(2)
    cluster.world.sleep(4)
    for value in (b"a", b"b", b"c", b"d"):
        cluster.produce(0, value, acks=1)
    if deleted:
        assert delete_records(cluster, 0, deleted) == (0, deleted)
    cluster.kill(0) if killed else cluster.node(0).shut_down()
    cluster.world.sleep(3)
    cluster.start(1)
    cluster.world.sleep(2)
    assert cluster.produce(1, b"e", acks=1) == [(0, 0)]
    return cluster


def checkpointed_recovery_point(cluster: VirtualCluster, directory: str = "") -> int:
    text = cluster.disk(0).read_text(directory + RECOVERY_POINTS)
    assert text is not None
    return parse_offsets(text)[T]


@pytest.mark.parametrize(
    ("knobs", "deleted", "cut_to", "start"),
    [("0.10", 0, 1, 0), ("2.0.0", 0, 1, 0), ("4.1", 0, 0, 0), ("0.10", 3, 1, 1), ("2.0.0", 3, 1, 1)],
)
def test_a_truncation_lowers_the_recovery_point_on_disk_wherever_the_log_starts_then(
    knobs: str, deleted: int, cut_to: int, start: int
) -> None:
    cluster = overtaken(knobs, deleted)
    assert checkpointed_recovery_point(cluster) == 4
    cluster.start(0)
    cluster.world.sleep(2)
    assert bounds(cluster, 0) == (start, 1)
    assert checkpointed_recovery_point(cluster) == cut_to


def test_what_is_appended_where_a_log_was_cut_is_not_taken_for_flushed_by_the_next_start() -> None:
    cluster = overtaken("4.1")
    cluster.start(0)
    cluster.world.sleep(2)
    for value in (b"f", b"g", b"h", b"i", b"j"):
        cluster.produce(1, value, acks=1)
    cluster.world.sleep(1)
    cluster.kill(0)
    log = cluster.start(0).partitions[T].log
    assert (log.log_end_offset, log.recovery_point) == (6, 0)
    cluster.node(0).lose_power()
    assert cluster.start(0).partitions[T].log.log_end_offset == 0


@pytest.mark.parametrize(
    ("knobs", "directories", "failed", "exit_codes"),
    [("0.10", 1, "", {0: 1}), ("4.1", 1, "", {0: 1}), ("4.1", 2, "log-0", {})],
)
def test_a_directory_that_refuses_a_lowered_recovery_point_goes_offline_and_gets_it_at_the_next_start(
    knobs: str, directories: int, failed: str, exit_codes: dict[int, int]
) -> None:
    cluster = overtaken(knobs, log_dirs_count=directories)
    within = f"{failed}/" if failed else ""
    cluster.start(0)
    cluster.disk(0).failed.add(failed)
    cluster.world.sleep(2)
    assert cluster.exit_codes == exit_codes
    row = json.loads(cluster.node(0).timeline_rows("storage_failed")[0]["detail"])
    assert (row["operation"], row["log_dir"]) == ("checkpoint the recovery points", 0)
    assert cluster.brokers[0].partitions[T].replica.role == "offline"
    cluster.disk(0).failed.clear()
    assert checkpointed_recovery_point(cluster, within) == 4
    if not exit_codes:
        cluster.kill(0)
    end = cluster.start(0).partitions[T].log.log_end_offset
    assert end < 4
    assert checkpointed_recovery_point(cluster, within) == end


@pytest.mark.parametrize(("rule", "start"), [("unwritten", 3), ("written", 0)])
def test_a_log_start_that_a_cut_has_lowered_survives_a_crash_only_if_it_is_written_at_once(
    rule: str, start: int
) -> None:
    cluster = overtaken("2.8", 3, overrides={"lowered_log_start": rule})
    cluster.start(0)
    cluster.world.sleep(2)
    assert bounds(cluster, 0) == (0, 1)
    for value in (b"f", b"g", b"h"):
        cluster.produce(1, value, acks=1)
    cluster.world.sleep(1)
    cluster.kill(0)
    cluster.start(0)
    assert bounds(cluster, 0) == (start, 4)


@pytest.mark.parametrize(("rule", "start"), [("forgotten", 4), ("kept", 0)])
@pytest.mark.parametrize("killed", [False, True])
def test_a_broker_that_forgets_the_epoch_of_its_emptied_log_does_not_see_that_it_differs(
    killed: bool, rule: str, start: int
) -> None:
    never = {"log_flush_start_offset_checkpoint_interval_ms": 500}
    cluster = overtaken("2.8", 4, killed=killed, overrides={"emptied_log_epoch": rule}, **never)
    for value in (b"f", b"g", b"h", b"i"):
        cluster.produce(1, value, acks=1)
    cluster.start(0)
    cluster.world.sleep(2)
    assert bounds(cluster, 0) == (start, 5)


def test_a_truncation_above_the_recovery_point_on_disk_leaves_the_checkpoint_alone() -> None:
    cluster = overtaken("4.1", killed=True)
    cluster.start(0)
    cluster.world.sleep(2)
    assert any("Truncated t-0 from offset 4 to 0" in line for line in cluster.said)
    assert cluster.disk(0).read_text(RECOVERY_POINTS) is None


# ------------------------------------------------------------------------------------------------- shutdowns


def test_a_clean_shutdown_flushes_and_is_remembered_once() -> None:
    cluster = cluster_with_topic()
    cluster.produce(0, b"a", acks=1)
    cluster.world.sleep(1)
    epoch = cluster.brokers[1].controller.broker_epoch
    cluster.node(1).shut_down()
    assert cluster.node(1).lose_power() == []
    assert cluster.disk(1).read_text(CLEAN_SHUTDOWN) == f'{{"version": 0, "brokerEpoch": {epoch}, "incarnation": 0}}'
    cluster.start(1)
    assert any("The last shutdown was clean." in line for line in cluster.said)
    assert bounds(cluster, 1) == (0, 1)
    assert cluster.disk(1).read_text(CLEAN_SHUTDOWN) is None


@pytest.mark.parametrize(("knobs", "clean"), [("3.7", False), ("2.1", True)])
def test_a_death_while_loading_leaves_the_marker_of_a_clean_shutdown_only_where_it_is_removed_late(
    knobs: str, clean: bool
) -> None:
    cluster = cluster_with_topic(knobs)
    node = cluster.node(1)
    node.shut_down()
    node.start(NodeFaults(dies_while_loading=True))
    cluster.world.sleep(1)
    assert cluster.exit_codes[1] == 1
    assert (cluster.disk(1).read_text(CLEAN_SHUTDOWN) is not None) == clean
    cluster.start(1)
    said = [line for line in cluster.said if "The last shutdown was" in line and "[1]" in line]
    assert ("was clean" in said[-1]) == clean


def test_an_unclean_shutdown_takes_a_broker_out_of_the_eligible_replicas_a_clean_one_does_not() -> None:
    def elr_after(end: str) -> list[int]:
        cluster = cluster_with_topic("4.1")
        cluster.kill(1)
        cluster.world.sleep(3)
        cluster.node(2).shut_down() if end == "clean" else cluster.kill(2)
        cluster.world.sleep(3)
        assert 2 in cluster.controller.status()["partitions"][0]["elr"]
        cluster.deafen(0)  # or it would take its followers back
        cluster.start(2)
        cluster.world.sleep(0.2)
        state = cluster.controller.status()["partitions"][0]
        return [node for node in (2,) if node in state["elr"] or node in state["isr"]]

    assert elr_after("clean") == [2]
    assert elr_after("unclean") == []


# ------------------------------------------------------------------------------------------------- full disks


@pytest.mark.parametrize(("knobs", "answers"), [("2.0.0", [(56, -1)]), ("0.11", [])])
def test_a_broker_with_a_full_disk_answers_only_since_directories_fail_on_their_own(
    knobs: str, answers: list[tuple[int, int]]
) -> None:
    cluster = cluster_with_topic(knobs)
    cluster.disk(0).free_bytes = 10
    found = cluster.call(0, ApiKey.PRODUCE, 8, produce_request("t", batch(b"a")))
    codes = [(one.error_code, one.base_offset) for a in found if a for one in a.responses[0].partition_responses]
    assert codes == answers
    cluster.world.sleep(1)
    assert cluster.exit_codes == {0: 1}


# ------------------------------------------------------------------------------------------------- log starts


def test_deleted_records_are_gone_on_every_replica_and_for_consumers() -> None:
    cluster = cluster_with_topic()
    for value in (b"a", b"b", b"c"):
        cluster.produce(0, value, acks=1)
    cluster.world.sleep(1)
    assert delete_records(cluster, 0, 2) == (0, 2)
    cluster.world.sleep(1)
    assert [bounds(cluster, node) for node in (0, 1, 2)] == [(2, 3)] * 3
    (answer,) = cluster.call(0, ApiKey.FETCH, 11, fetch_request("t", 1))
    assert answer.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    asked = ListOffsetsRequest(topics=[ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, EARLIEST_TIMESTAMP)])])
    (found,) = cluster.call(0, ApiKey.LIST_OFFSETS, 5, asked)
    assert found.topics[0].partitions[0].offset == 2
    rows = [row["detail"] for row in cluster.node(1).timeline_rows("log_start")]
    assert rows == ['{"from_offset": 0, "to_offset": 2, "reason": "leader"}']


def test_records_beyond_the_high_watermark_cannot_be_deleted() -> None:
    cluster = cluster_with_topic()
    cluster.produce(0, b"a", acks=1)
    cluster.world.sleep(1)
    assert delete_records(cluster, 0, 2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete_records(cluster, 1, 1) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert delete_records(cluster, 1, 1, topic="nowhere") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete_records(cluster, 0, -1) == (0, 1)
    assert cluster.disk(0).list("t-0") == ["00000000000000000000.log", "leader-epoch-checkpoint"]


@pytest.mark.parametrize(("wait_s", "start"), [(0.5, 0), (5, 1)])
def test_a_killed_broker_shows_deleted_records_again_until_the_log_start_is_checkpointed(
    wait_s: float, start: int
) -> None:
    cluster = cluster_with_topic(log_flush_start_offset_checkpoint_interval_ms=4_600)
    cluster.produce(0, b"a", acks=1)
    cluster.produce(0, b"b", acks=1)
    cluster.world.sleep(0.2)
    delete_records(cluster, 0, 1)
    cluster.world.sleep(wait_s - 0.2)
    cluster.kill(0)
    cluster.start(0)
    assert bounds(cluster, 0)[0] == start


def test_a_clock_that_jumps_beyond_the_retention_time_empties_the_leader_and_then_its_followers() -> None:
    cluster = cluster_with_topic(log_retention_ms=60_000, log_retention_check_interval_ms=1_000)
    record = batch(b"a", timestamp_ms=cluster.world.wall_ms())
    cluster.call(0, ApiKey.PRODUCE, 9, produce_request("t", record, acks=1))
    cluster.world.sleep(2)
    assert bounds(cluster, 0) == (0, 1)
    cluster.node(0).clock.wall_offset_ms = 120_000
    cluster.world.sleep(3)
    assert [bounds(cluster, node) for node in (0, 1, 2)] == [(1, 1)] * 3
    (row,) = cluster.node(0).timeline_rows("log_start")
    assert row["detail"] == '{"from_offset": 0, "to_offset": 1, "reason": "retention"}'
    assert cluster.disk(0).list("t-0") == ["00000000000000000001.log", "leader-epoch-checkpoint"]


def test_a_follower_s_clock_empties_only_the_follower() -> None:
    cluster = cluster_with_topic(log_retention_ms=60_000, log_retention_check_interval_ms=1_000)
    record = batch(b"a", timestamp_ms=cluster.world.wall_ms())
    cluster.call(0, ApiKey.PRODUCE, 9, produce_request("t", record, acks=1))
    cluster.world.sleep(2)
    cluster.node(1).clock.wall_offset_ms = 120_000
    cluster.world.sleep(3)
    assert [bounds(cluster, node) for node in (0, 1, 2)] == [(0, 1), (1, 1), (0, 1)]


def test_an_old_timestamp_makes_a_record_vanish_at_the_next_check() -> None:
    cluster = cluster_with_topic(log_retention_ms=60_000, log_retention_check_interval_ms=1_000)
    record = batch(b"a", timestamp_ms=cluster.world.wall_ms() - 120_000)
    cluster.call(0, ApiKey.PRODUCE, 9, produce_request("t", record, acks=1))
    cluster.world.sleep(2)
    assert bounds(cluster, 0) == (1, 1)


# ------------------------------------------------------------------------------------------------- the controller


def test_the_controller_knows_the_minimum_and_whether_elections_may_be_unclean() -> None:
    cluster = cluster_with_topic(unclean_leader_election_enable=True)
    cluster.kill(1)
    cluster.kill(2)
    cluster.world.sleep(4)
    assert cluster.controller.status()["partitions"][0]["isr"] == [0]
    cluster.kill(0)
    cluster.world.sleep(3)
    cluster.start(1)
    cluster.world.sleep(2)
    state = cluster.controller.status()["partitions"][0]
    assert (state["leader"], state["isr"]) == (1, [1])
    elections = cluster.node(CONTROLLER_ID).timeline_rows("election")
    assert '"clean": false' in elections[-1]["detail"]
