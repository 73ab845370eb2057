"""What every replica's power loss excuses, and what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checkers import check
from harness.checker import Verdict
from harness.client_tasks.polling import POLL_S
from harness.findings import POLL_NS
from tests.checkers.clients import commit
from tests.checkers.story import NODES, Story


def powerless(*nodes: int, before: bool = False, **falsified: Any) -> Story:
    """Three acknowledged records of which the last is gone after these nodes have lost power."""
    story = Story()

    def fail() -> None:
        outage = {"injected_ns": story.now + 1, "healed_ns": story.now + 500_000}
        for node in nodes:
            story.fault(f"dark-{node}", **({"kind": "power_loss", "nodes": [str(node)]} | outage | falsified))

    for _ in range(2):
        story.send()
    if before:
        fail()
    story.send()
    story.poll(5, range(3))
    if not before:
        fail()
    story.now += 1_000_000
    for node in NODES:
        story.cut(node, 2)
    story.elect(1)
    story.send(result="info")
    return story.finish()


def verdicts(story: Story, path: Path, **manifest: Any) -> dict[str, Verdict]:
    [verdict] = check([story.write(path, **manifest)], engine="reference")
    return {anomaly.kind: anomaly.verdict for anomaly in verdict.anomalies}


def test_a_loss_after_every_replica_lost_power_is_documented_from_every_side(tmp_path: Path) -> None:
    judged = verdicts(powerless(*NODES), tmp_path / "r")
    assert judged.keys() >= {"lost-write", "vanished-read", "inconsistent-offsets", "hw-regression"}
    assert set(judged.values()) == {Verdict.DOCUMENTED}


def test_one_replica_that_kept_its_power_makes_the_loss_a_violation(tmp_path: Path) -> None:
    assert verdicts(powerless(0, 2), tmp_path / "r")["lost-write"] is Verdict.VIOLATION


def test_power_losses_one_after_the_other_excuse_nothing(tmp_path: Path) -> None:
    story = powerless(*NODES)
    for fault in story.faults:
        fault["healed_ns"] = fault["injected_ns"] + 10
        fault["injected_ns"] += 100 * int(fault["nodes"][0])
        fault["healed_ns"] += 100 * int(fault["nodes"][0])
    assert verdicts(story, tmp_path / "r")["lost-write"] is Verdict.VIOLATION


def test_a_power_loss_of_all_that_is_healed_in_its_own_instant_takes_all_of_them_down(tmp_path: Path) -> None:
    story = powerless(*NODES)
    for fault in story.faults:
        fault.update(dict.fromkeys(("proven_ns", "healed_ns", "heal_proven_ns"), fault["injected_ns"]))
    assert verdicts(story, tmp_path / "r")["lost-write"] is Verdict.DOCUMENTED


def test_a_node_is_still_down_in_the_instant_of_its_healing(tmp_path: Path) -> None:
    story = powerless(*NODES)
    for node, fault in enumerate(story.faults):
        fault["injected_ns"] += 100 * (node == len(NODES) - 1)
        fault["proven_ns"] = fault["injected_ns"]
        fault["healed_ns"] = fault["heal_proven_ns"] = story.faults[0]["injected_ns"] + 100
    assert verdicts(story, tmp_path / "r")["lost-write"] is Verdict.DOCUMENTED


def test_an_outage_that_was_never_healed_is_one_all_the_same(tmp_path: Path) -> None:
    judged = verdicts(powerless(*NODES, healed_ns=None, heal_proven_ns=None), tmp_path / "r")
    assert judged["lost-write"] is Verdict.DOCUMENTED


def test_a_power_loss_before_the_acknowledgement_excuses_nothing(tmp_path: Path) -> None:
    assert verdicts(powerless(*NODES, before=True), tmp_path / "r")["lost-write"] is Verdict.VIOLATION


def test_a_poll_of_ours_waits_no_longer_than_the_checkers_expect() -> None:
    assert POLL_S * 1e9 == POLL_NS


@pytest.mark.parametrize(("later_ms", "verdict"), [(100, Verdict.DOCUMENTED), (300, Verdict.VIOLATION)])
def test_a_poll_that_was_under_way_when_power_failed_may_have_been_given_the_record_before(
    tmp_path: Path, later_ms: int, verdict: Verdict
) -> None:
    story = Story()
    for _ in range(3):
        story.send()
    outage = {"injected_ns": story.now + 1, "healed_ns": story.now + 500_000}
    for node in NODES:
        story.fault(f"dark-{node}", kind="power_loss", nodes=[str(node)], **outage)
    story.now += later_ms * 1_000_000
    story.poll(5, range(3))
    for node in NODES:
        story.cut(node, 2)
    story.elect(1)
    story.send(result="info")
    judged = verdicts(story.finish(), tmp_path / "r")
    assert (judged["lost-write"], judged["vanished-read"]) == (Verdict.DOCUMENTED, verdict)


def test_a_power_loss_that_was_not_proven_excuses_nothing_and_proves_nothing(tmp_path: Path) -> None:
    assert verdicts(powerless(*NODES, proven_ns=None), tmp_path / "r")["lost-write"] is Verdict.INDETERMINATE


def configured(**settings: Any) -> dict[str, Any]:
    topic = {"name": "ledger", "partitions": 1, "replication_factor": len(NODES)}
    return {"scenario": {"cluster": {"brokers": len(NODES)}, "topics": [topic]}, "settings": settings}


@pytest.mark.parametrize("every", [1, "1"], ids=["the built-in cluster's", "real Kafka's"])
def test_where_every_write_is_flushed_a_power_loss_excuses_nothing(tmp_path: Path, every: int | str) -> None:
    flushing = configured(**{"log.flush.interval.messages": every})
    judged = verdicts(powerless(*NODES), tmp_path / "r", configuration=flushing)
    assert judged["lost-write"] is Verdict.VIOLATION


def test_no_flush_helps_a_disk_that_is_swapped(tmp_path: Path) -> None:
    flushing = configured(**{"log.flush.interval.messages": 1})
    judged = verdicts(powerless(*NODES, kind="wipe_disk"), tmp_path / "r", configuration=flushing)
    assert judged["lost-write"] is Verdict.DOCUMENTED


@pytest.mark.parametrize("copies", [1, "1"], ids=["the built-in cluster's", "real Kafka's"])
def test_a_commit_of_which_there_was_one_copy_may_have_been_where_power_failed(
    tmp_path: Path, copies: int | str
) -> None:
    story = Story()
    for _ in range(3):
        story.send()
    story.poll(5, range(3))
    commit(story, 1)
    commit(story, 3)
    story.fault("dark", kind="power_loss", nodes=["2"])
    story.now += 1_000_000
    story.restart(2)
    commit(story, 1, "committed")
    setting = configured(**{"offsets.topic.replication.factor": copies})
    judged = verdicts(story.finish(), tmp_path / "r", configuration=setting)
    assert judged["lost-commit"] is Verdict.INDETERMINATE


def test_replicas_that_disagree_after_a_power_loss_are_a_violation(tmp_path: Path) -> None:
    story = powerless(*NODES)
    row = next(row for row in story.logs if row["node"] == 2 and row["offset"] == 1)
    row["value"] += 1000
    row["batch_crc"] += 1
    assert verdicts(story, tmp_path / "r")["replica-divergence"] is Verdict.VIOLATION


REPLACED: dict[str, Any] = {"kind": "log_dir_failure", "parameters": '{"log_dir": 0, "replaced": true}'}


def test_directories_that_all_came_back_as_new_disks_are_such_failures(tmp_path: Path) -> None:
    assert verdicts(powerless(*NODES, **REPLACED), tmp_path / "r")["lost-write"] is Verdict.DOCUMENTED


def test_a_directory_that_came_back_as_it_was_excuses_nothing(tmp_path: Path) -> None:
    story = powerless(*NODES, **REPLACED | {"parameters": '{"log_dir": 0, "replaced": false}'})
    assert verdicts(story, tmp_path / "r")["lost-write"] is Verdict.VIOLATION


def test_one_directory_of_several_that_was_replaced_excuses_nothing(tmp_path: Path) -> None:
    several = configured(**{"log.dirs.count": 2})
    judged = verdicts(powerless(*NODES, **REPLACED), tmp_path / "r", configuration=several)
    assert judged["lost-write"] is Verdict.VIOLATION


@pytest.mark.parametrize("number", [5, 40])
@pytest.mark.parametrize("later", [0, 3])
def test_a_failure_excuses_no_later_loss_however_many_it_caused(tmp_path: Path, number: int, later: int) -> None:
    story = Story()
    for _ in range(number):
        story.send()
    for node in NODES:
        outage = {"injected_ns": story.now + 1, "healed_ns": story.now + 500_000}
        story.fault(f"dark-{node}", kind="power_loss", nodes=[str(node)], **outage)
    story.now += 1_000_000
    for node in NODES:
        story.cut(node, 0)
    story.elect(1)
    for _ in range(number):
        story.send(result="info")
    for _ in range(later):
        story.send()
    for node in NODES:
        story.cut(node, number)
    story.elect(2)
    [verdict] = check([story.finish().write(tmp_path / "r")], engine="reference")
    found = {anomaly.verdict for anomaly in verdict.anomalies if anomaly.kind == "lost-write"}
    assert found == {Verdict.DOCUMENTED, *([Verdict.VIOLATION] if later else [])}
