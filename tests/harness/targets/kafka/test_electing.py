"""Elections of a controller that is played by a few lines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from harness.errors import EnvironmentFault
from harness.model import NodeId, TopicPartition
from harness.target import ClusterView, PartitionView
from harness.targets.kafka import electing
from harness.targets.kafka.electing import Electing
from harness.targets.kafka.observation import ClusterObservation
from harness.targets.kafka.releases import release
from harness.wire.messages.operators import ElectLeadersResponse

LEDGER = TopicPartition("ledger", 0)
REPLICAS = (NodeId(0), NodeId(1))
SILENCE = ClusterView(0, (), {})


def led_by(leader: int) -> ClusterView:
    return ClusterView(0, REPLICAS, {LEDGER: PartitionView(NodeId(leader), 0, REPLICAS, REPLICAS)})


def played(*views: ClusterView) -> Electing:
    """By a controller that obeys, and of whom these views are had, the last one again and again."""
    left = list(views)
    controller = SimpleNamespace(ask=lambda *_: ElectLeadersResponse(), close=lambda: None)
    observation = SimpleNamespace(
        release=release("4.1.0"),
        view=lambda: left.pop(0) if left[1:] else left[0],
        asks_controllers=lambda: True,
        conversation_with_controller=lambda _: controller,
    )
    return Electing(cast("ClusterObservation", observation))


def test_a_controller_that_is_late_to_answer_is_asked_again() -> None:
    controller = played(SILENCE, led_by(1), SILENCE, led_by(1), SILENCE, led_by(0))
    controller.elect(LEDGER, None, unclean=False)
    assert controller._seen(LEDGER).leader == 0


def test_a_controller_that_never_answers_again_is_not_waited_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(electing, "_TIMEOUT_S", 0.1)
    with pytest.raises(EnvironmentFault, match=r"0 did not become its leader within 0\.1 s"):
        played(led_by(1), SILENCE).elect(LEDGER, None, unclean=False)
