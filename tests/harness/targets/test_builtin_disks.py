"""What is done to disks, and by administrators, on real processes and real files."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import faults
from harness.broker.settings import Settings
from harness.client_properties import Access
from harness.clients.sender import Sender
from harness.errors import EnvironmentFault
from harness.model import NodeId, TopicPartition
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.runner.conditions import unsettled
from harness.target import LogDamage, TopicSpec
from harness.targets.builtin import BuiltinTarget
from harness.targets.node_disk import batch_at
from tests.records import record
from tests.replica_rows import held

LEDGER = TopicPartition("ledger", 0)
AS_IN_THE_CONTRACT = pytest.mark.nightly("starts a cluster of its own; by day test_contract does so to a shared one")


def eventually(look: Callable[[], bool], within_s: float = 15.0) -> bool:
    deadline = time.monotonic() + within_s
    while not (held := look()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return held


@contextmanager
def running(path: Path, brokers: int = 1, **settings: object) -> Iterator[BuiltinTarget]:
    target = BuiltinTarget(path / "cluster", brokers, generation(CURRENT_GENERATION), Settings.parse(settings))
    try:
        target.start()
        target.create_topic(TopicSpec("ledger", 1, brokers, (tuple(map(NodeId, range(brokers))),)))
        yield target
    finally:
        target.stop()


def send(target: BuiltinTarget, first: int, count: int) -> None:
    sender = Sender(Access(target.bootstrap()), "test", -1, 5, logging.getLogger("seawall.tests"))
    try:
        for value in range(first, first + count):
            assert sender.send(LEDGER, record(value)).kind == "ok"
    finally:
        sender.close()


def values(target: BuiltinTarget, node: int = 0) -> list[int | None]:
    return [row["value"] for row in held(target) if row["node"] == node]


@AS_IN_THE_CONTRACT
def test_a_power_loss_takes_what_had_not_reached_the_disk_and_says_what(tmp_path: Path) -> None:
    with running(tmp_path) as target:
        send(target, 0, 2)
        target.sync_disk("0")
        send(target, 2, 3)
        loss = faults.parse({"fault": "power_loss", "node": 0}, "test").aimed(target.view(), 1)
        loss.inject(target)
        receipt = loss.probe(target)
        assert receipt.holds
        assert "dropped from the page cache: ledger-0/" in receipt.seen
        assert values(target) == [0, 1]
        loss.heal(target)
        assert loss.probe_healed(target).holds
        assert not loss.probe(target).holds
        assert eventually(lambda: not unsettled(target, [LEDGER]))
        send(target, 5, 1)
    assert values(target) == [0, 1, 5]


def test_nothing_is_lost_to_a_power_loss_after_a_clean_shutdown(tmp_path: Path) -> None:
    with running(tmp_path) as target:
        send(target, 0, 2)
        target.shut_down("0")
        target.lose_power("0")
        assert values(target) == [0, 1]
        assert not target.has_lost_power("0").holds  # it was not the power that ended it


def test_what_is_flushed_at_every_message_survives_a_power_loss(tmp_path: Path) -> None:
    with running(tmp_path, **{"log.flush.interval.messages": 1}) as target:
        send(target, 0, 3)
        target.lose_power("0")
        assert values(target) == [0, 1, 2]


def test_a_probe_of_a_power_loss_drops_nothing_itself(tmp_path: Path) -> None:
    with running(tmp_path) as target:
        send(target, 0, 2)
        target.kill("0")
        assert not target.has_lost_power("0").holds
        assert values(target) == [0, 1]


@AS_IN_THE_CONTRACT
def test_a_wiped_broker_comes_back_with_nothing_and_is_filled_again(tmp_path: Path) -> None:
    with running(tmp_path, brokers=2) as target:
        send(target, 0, 2)
        wipe = faults.parse({"fault": "wipe_disk", "node": 1}, "test").aimed(target.view(), 1)
        wipe.inject(target)
        assert wipe.probe(target).holds
        assert values(target, node=1) == []
        wipe.heal(target)
        assert wipe.probe_healed(target).holds
        assert eventually(lambda: not unsettled(target, [LEDGER]))
    assert values(target, node=1) == [0, 1]


@pytest.mark.parametrize(
    ("how", "clean"),
    [
        ("flip", False),
        ("cut", True),
        *(pytest.param(*one, marks=AS_IN_THE_CONTRACT) for one in (("flip", True), ("cut", False))),
    ],
)
def test_a_damaged_batch_is_seen_to_be_damaged(tmp_path: Path, how: str, clean: bool) -> None:
    with running(tmp_path) as target:
        send(target, 0, 3)
        written = {"fault": "corrupt_log", "node": 0, "topic": "ledger", "offset": 1, "how": how, "clean": clean}
        corrupt = faults.parse(written, "test").aimed(target.view(), 1)
        assert not corrupt.probe(target).holds
        corrupt.inject(target)
        receipt = corrupt.probe(target)
        assert receipt.holds
        assert ("the checksum of the batch is wrong" in receipt.seen) == (how == "flip")
        intact = [row["intact"] for row in held(target)]
        assert intact == ([True, False, True] if how == "flip" else [True, False])
        corrupt.heal(target)
        assert corrupt.probe_healed(target).holds


def test_a_batch_that_is_not_there_cannot_be_damaged(tmp_path: Path) -> None:
    with running(tmp_path) as target:
        send(target, 0, 1)
        target.kill("0")
        with pytest.raises(EnvironmentFault, match="no batch of ledger-0 holds offset 7"):
            target.damage_log("0", LogDamage(LEDGER, 7, "flip"))
        assert batch_at(tmp_path / "cluster" / "broker-0" / "data", LEDGER, 0) is not None


def test_the_disk_of_a_running_node_is_not_touched(tmp_path: Path) -> None:
    with running(tmp_path) as target:
        send(target, 0, 1)
        acts: list[Callable[[], None]] = [
            lambda: target.wipe_disk("0"),
            lambda: target.damage_log("0", LogDamage(LEDGER, 0, "cut")),
        ]
        for act in acts:
            with pytest.raises(EnvironmentFault, match="node 0 is not at rest"):
                act()
        assert not target.is_disk_empty("0").holds
    assert values(target) == [0]


@AS_IN_THE_CONTRACT
def test_a_broker_that_halts_has_ended_itself_and_one_that_is_killed_or_stopped_has_not(tmp_path: Path) -> None:
    with running(tmp_path) as target:
        target.shut_down("0")
        assert target.is_shut_down("0").holds
        assert not target.has_exited("0").holds
        target.restart("0")
        assert eventually(lambda: not unsettled(target, [LEDGER]))
        target.limit_disk("0", 0)
        sender = Sender(Access(target.bootstrap()), "test", -1, 1, logging.getLogger("seawall.tests"))
        sender.send(LEDGER, record(1, size=100_000))
        sender.close()
        assert eventually(lambda: target.has_exited("0").holds)
        assert not target.is_dead("0").holds
        target.limit_disk("0", None)
        target.restart("0")
        assert not target.has_exited("0").holds
        target.kill("0")
        assert not target.has_exited("0").holds
