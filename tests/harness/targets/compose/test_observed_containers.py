"""Who controls the Kafka of a compose file, by which name."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model import CONTROLLER, NodeId
from harness.targets.compose.beside import Ports
from harness.targets.compose.numbering import Numbering
from harness.targets.compose.observed_containers import ObservedContainers
from harness.targets.kafka.releases import release

NUMBERING = Numbering({NodeId(0): 3, NodeId(1): 5, NodeId(2): 7})


def cluster(controllers: Sequence[str]) -> ObservedContainers:
    ports = Ports({}, {}, {"0": 20_000, "1": 20_001, "2": 20_002}, toxiproxy=1, probe=2, controller=20_100)
    return ObservedContainers(
        release=release("4.1.0"),
        broker_names=("0", "1", "2"),
        controllers=controllers,
        asks_controllers=True,
        ports=ports,
        numbering=NUMBERING,
        metadata_dirs=(),
    )


def test_a_broker_that_is_elected_controller_goes_by_its_number_and_is_asked_where_it_answers_the_harness() -> None:
    combined = cluster(("0", "1", "2"))
    assert combined.controller_named(NUMBERING.node(5)) == "1"
    assert combined.controller_address("1") == ("127.0.0.1", 20_001)


def test_all_controllers_that_are_no_brokers_go_by_one_name() -> None:
    alone = cluster((CONTROLLER,))
    assert alone.controller_named(NUMBERING.node(100)) == alone.controller_named(NUMBERING.node(101)) == CONTROLLER
    assert alone.controller_address(CONTROLLER) == ("127.0.0.1", 20_100)
