"""A built-in cluster for targets that are running clusters, and what clients see of its topics."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.broker.settings import Settings
from harness.client_properties import Access
from harness.model import Link, NodeId
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.target import PartitionView
from harness.targets.bootstrap.administration import Administration
from harness.targets.builtin import BuiltinTarget


@contextmanager
def running(directory: Path, bugs: str = "", **settings: Any) -> Iterator[BuiltinTarget]:
    """Three brokers, started; stopped in the end."""
    knobs = generation(CURRENT_GENERATION, {"bugs": bugs} if bugs else {})
    target = BuiltinTarget(directory, 3, knobs, Settings.parse(settings))
    try:
        target.start()
        yield target
    finally:
        target.stop()


def topics(bootstrap: str) -> set[str]:
    """The names of all topics but Kafka's own."""
    return {name for name in Administration(Access(bootstrap)).topics() if not name.startswith("__")}


@contextmanager
def deposing_the_first_leader(cluster: BuiltinTarget) -> Iterator[None]:
    """Cuts a partition's second replica off its peers until it is out of the ISR; then kills the leader."""

    def state() -> PartitionView:
        there = cluster.view().partitions
        return there[min(name for name in there if not name.topic.startswith("__"))]

    def depose() -> None:
        while not topics(cluster.bootstrap()):
            time.sleep(0.05)
        time.sleep(1)
        leader, second, *others = map(str, state().replicas)
        links = [link for peer in (leader, *others) for link in (Link(second, peer), Link(peer, second))]
        cluster.cut(links)
        while NodeId(int(second)) in state().isr:
            time.sleep(0.05)
        time.sleep(1.5)
        cluster.kill(leader)
        cluster.mend(links)
        time.sleep(2)
        cluster.restart(leader)

    deposing = threading.Thread(target=depose)
    deposing.start()
    yield
    deposing.join()


@contextmanager
def losing_topics(bootstrap: str) -> Iterator[None]:
    """A second after there are topics, all of them are deleted."""

    def lose() -> None:
        while not (there := topics(bootstrap)):
            time.sleep(0.05)
        time.sleep(1)
        Administration(Access(bootstrap)).delete(list(there))

    losing = threading.Thread(target=lose)
    losing.start()
    yield
    losing.join()
