"""What brokers before 2.1 believe, by lines that such brokers have printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import TopicPartition
from harness.targets.kafka.logged_roles import LoggedRole, LoggedRoles

LEDGER = TopicPartition("my-ledger", 0)

OF_0_10 = """\
[21:32:18,163] INFO starting (kafka.server.KafkaServer)
[21:32:34,479] TRACE Broker 1 received LeaderAndIsr request PartitionState(controllerEpoch=1, leader=1, \
leaderEpoch=7, isr=[1, 2, 0], zkVersion=0, replicas=[0, 1, 2]) correlation id 1 from controller 100 epoch 1 for \
partition [my-ledger,0] (state.change.logger)
[21:32:34,528] TRACE Broker 1 handling LeaderAndIsr request correlationId 1 from controller 100 epoch 1 \
starting the become-leader transition for partition my-ledger-0 (state.change.logger)
[21:32:34,628] TRACE Broker 1 completed LeaderAndIsr request correlationId 1 from controller 100 epoch 1 \
for the become-leader transition for partition my-ledger-0 (state.change.logger)
"""

OF_2_0 = """\
[21:42:34,000] INFO starting (kafka.server.KafkaServer)
[21:42:34,218] TRACE [Broker id=1] Received LeaderAndIsr request PartitionState(controllerEpoch=1, leader=0, \
leaderEpoch=7, isr=0,1,2, zkVersion=0, replicas=0,1,2, isNew=true) correlation id 3 from controller 100 epoch 1 for \
partition my-ledger-0 (state.change.logger)
[21:42:34,551] TRACE [Broker id=1] Handling LeaderAndIsr request correlationId 3 from controller 100 epoch 1 \
starting the become-follower transition for partition my-ledger-0 with leader 0 (state.change.logger)
[21:42:34,600] TRACE [Broker id=1] Completed LeaderAndIsr request correlationId 3 from controller 100 epoch 1 \
for the become-follower transition for partition my-ledger-0 with leader 0 (state.change.logger)
"""

UNAVAILABLE = """\
[21:42:34,560] ERROR [Broker id=1] Received LeaderAndIsrRequest with correlation id 3 from controller 100 \
epoch 1 for partition my-ledger-0 (last update controller epoch 1) but cannot become follower since the new leader 0 \
is unavailable. (state.change.logger)
"""


@pytest.mark.parametrize(("text", "role"), [(OF_0_10, "leader"), (OF_2_0, "follower")])
def test_a_role_is_believed_from_the_end_of_its_transition_on_and_not_before(
    text: str, role: str, tmp_path: Path
) -> None:
    log, seen = tmp_path / "node.log", []
    logged_roles = LoggedRoles(log)
    assert not logged_roles.read_on()
    for line in text.splitlines(keepends=True):
        with log.open("a") as file:
            file.write(line[:-20])
            file.flush()
            seen.append(dict(logged_roles.read_on()))
            file.write(line[-20:])
        seen.append(dict(logged_roles.read_on()))
    assert seen[:-1] == [{}] * (len(seen) - 1)
    assert seen[-1] == {LEDGER: LoggedRole(role, 7)}


def test_while_a_transition_is_under_way_nothing_is_believed(tmp_path: Path) -> None:
    log = tmp_path / "node.log"
    log.write_text(OF_0_10)
    logged_roles = LoggedRoles(log)
    assert logged_roles.read_on()
    with log.open("a") as file:
        file.writelines(OF_2_0.splitlines(keepends=True)[1:3])
    assert not logged_roles.read_on()


def test_a_transition_that_was_given_up_leaves_nothing_to_believe(tmp_path: Path) -> None:
    log, lines = tmp_path / "node.log", OF_2_0.splitlines(keepends=True)
    log.write_text("".join([*lines[:3], UNAVAILABLE, lines[3]]))
    assert not LoggedRoles(log).read_on()


def test_a_broker_that_starts_anew_believes_nothing(tmp_path: Path) -> None:
    log = tmp_path / "node.log"
    log.write_text(OF_0_10)
    logged_roles = LoggedRoles(log)
    assert logged_roles.read_on()
    with log.open("a") as file:
        file.write(OF_2_0.splitlines(keepends=True)[0])
    assert not logged_roles.read_on()
