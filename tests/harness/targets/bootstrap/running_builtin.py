"""A built-in cluster for targets that are running clusters, and what clients see of its topics."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from checkers import check
from harness.broker.settings import Settings
from harness.checker import RunVerdict
from harness.client_properties import Access
from harness.history.run_directory import RunDirectory
from harness.model import Link, NodeId
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.runner import plan, run
from harness.runner.run_lifecycle import RunLifecycle
from harness.scenario import Scenario, load
from harness.target import PartitionView
from harness.targets.bootstrap.administration import Administration
from harness.targets.builtin import BuiltinTarget

CALM = load("random-chaos")
SEED = 7


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


def judged(
    cluster: BuiltinTarget,
    out: Path,
    duration_s: float = 2,
    options: str = "",
    *,
    scenario: Scenario = CALM,
    **overrides: str,
) -> tuple[RunDirectory, RunVerdict]:
    """A run against its addresses, behind which ``options`` are, and the reference engine's verdict."""
    target = f"bootstrap:{cluster.bootstrap()}{options}"
    keys = {key.replace("_", ".", 1): value for key, value in overrides.items()}
    made = plan(scenario, target, seed=SEED, duration_s=duration_s, overrides=keys)
    directory = run(made, out)
    [verdict] = check([directory.path], engine="reference")
    return directory, verdict


def topics(bootstrap: str) -> set[str]:
    """The names of all topics but Kafka's own."""
    return {name for name in Administration(Access(bootstrap)).topics() if not name.startswith("__")}


@contextmanager
def before_the_load_stops(act: Callable[[], object]) -> Iterator[None]:
    """Runs in here have load until ``act`` returns, too, which their main thread calls."""
    stop_load = RunLifecycle.stop_load

    def act_and_stop(lifecycle: RunLifecycle) -> None:
        act()
        stop_load(lifecycle)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RunLifecycle, "stop_load", act_and_stop)
        yield


def depose_the_first_leader(cluster: BuiltinTarget, runs: Path) -> None:
    """Cuts the only partition's second replica off its peers until it lacks records, and kills the leader.

    Returns when the run below ``runs`` has been told a watermark of the next leader: with ``min.insync.replicas`` of 2
    there is none until a follower has joined it. The replica lacks what producers send in
    three seconds or so: the run's sampler asks the next leader long before they have sent as many records again.
    """

    def state() -> PartitionView:
        return cluster.view().partitions[partition]

    def told(leader_epoch: int) -> list[int]:
        """The watermarks that the run has been told of that epoch of the partition."""
        [asked] = runs.rglob("metadata.jsonl")
        rows = [json.loads(line) for line in asked.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [row["high_watermark"] for row in rows if (row["topic"], row["partition"]) == partition
                and row["leader_epoch"] == leader_epoch and row["high_watermark"] is not None]  # fmt: skip

    [partition] = [name for name in cluster.view().partitions if not name.topic.startswith("__")]
    _wait_until(lambda: bool(told(0)))
    leader, second, *others = map(str, state().replicas)
    links = [link for peer in (leader, *others) for link in (Link(second, peer), Link(peer, second))]
    cluster.cut(links)
    _wait_until(lambda: NodeId(int(second)) not in state().isr)
    known = max(told(0))
    _wait_until(lambda: max(told(0)) > known + 60)
    cluster.kill(leader)
    cluster.mend(links)
    _wait_until(lambda: bool(told(1)))
    cluster.restart(leader)


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline_s, "two minutes are not enough"
        time.sleep(0.05)


def lose_topics(bootstrap: str) -> None:
    """Deletes all topics but Kafka's own."""
    Administration(Access(bootstrap)).delete(list(topics(bootstrap)))
