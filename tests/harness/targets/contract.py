"""The targets that the shared suite asks, and what it needs to ask them: :mod:`test_contract` is what all must do.

A new target is one function, which starts a cluster and says how one record is sent to it, and one line in ``TARGETS``.
Real Kafka is asked in the night: starting brokers again and again takes minutes. What its tests need and cannot be had
makes them skip, with the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

import faults
from harness.broker.settings import Settings
from harness.client_properties import Access
from harness.clients.sender import Sender
from harness.clock import PacedClock, SystemClock
from harness.errors import EnvironmentFault, NoAnswer
from harness.fault import Fault
from harness.history.sends import Answer
from harness.model import NodeId, TopicPartition
from harness.payload import ProducerRecord
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.runner.conditions import unsettled
from harness.simulation.stack.client import Client
from harness.simulation.stack.producing import Producer
from harness.simulation.stack.simulated_clients import addresses
from harness.simulation.stack.tasks import Task
from harness.target import Receipt, ReplicaView, Target, TopicSpec
from harness.targets.builtin import BuiltinTarget
from harness.targets.compose.image import has_image
from harness.targets.compose.inspected_stack import find
from harness.targets.compose.project import TOXIPROXY_IMAGE, connected
from harness.targets.compose.target import ComposeTarget
from harness.targets.compose.written_stack import read
from harness.targets.kafka.fetching import Distribution, fetch
from harness.targets.kafka.jvm import java
from harness.targets.kafka.layout import Control
from harness.targets.kafka.local import LocalKafka
from harness.targets.kafka.process import ProcessTarget
from harness.targets.kafka.releases import TRIED
from harness.targets.kafka.server_properties import understood
from harness.targets.simulated import SimulatedTarget
from tests.records import record

T = TypeVar("T")

LEDGER = TopicPartition("ledger", 0)
SETTINGS = Settings(min_insync_replicas=2, default_replication_factor=3)
BROKERS = 3
_SEND_TIMEOUT_S = 20.0
_SHIPPED = Path(__file__).parents[3] / "compose"


@dataclass
class Trial:
    """A target on trial: three brokers that hold ``ledger-0``, preferably led by broker 0.

    Attributes:
        target: what it is asked to do beyond :class:`harness.target.Target` a test asks for with :meth:`needs`.
        clock: on which one waits for it.
        send_as: sends one record with the given acks, and waits for its answer.
        patience_s: how long it may take to come to something.
        starts_cut_off: whether a broker comes up that hears nothing of one peer; not where that may be the controller.
        counts_bytes: whether space is left to the byte; where it is left in pages, whatever writes first is refused.
    """

    target: Any
    clock: PacedClock
    send_as: Callable[[ProducerRecord, int], Answer]
    patience_s: float = 20.0
    counts_bytes: bool = True
    starts_cut_off: bool = True
    sent: int = 0

    def send(self, acks: int = -1) -> Answer:
        """Send the next record."""
        self.sent += 1
        return self.send_as(record(self.sent, LEDGER), acks)

    def eventually(self, look: Callable[[], bool]) -> bool:
        """Whether it comes to that in time."""
        deadline_ns = self.clock.monotonic_ns() + round(self.patience_s * 1e9)
        while not (held := look()) and self.clock.monotonic_ns() < deadline_ns:
            self.clock.sleep(0.02)
        return held

    def holds(self, probe: Callable[[Any], Receipt]) -> bool:
        """Whether the probe comes to see it."""

        def look() -> bool:
            try:
                return probe(self.target).holds
            except EnvironmentFault:
                return False

        return self.eventually(look)

    def asked(self, question: Callable[[Any], T]) -> T:
        """The answer, as soon as there is one."""
        told: list[T] = []

        def answers() -> bool:
            with suppress(NoAnswer):
                told.append(question(self.target))
            return bool(told)

        assert self.eventually(answers)
        return told[0]

    def is_led_by(self, node: int) -> bool:
        """Whether the controller says so; late, it says nothing."""
        seen = self.target.view().partitions.get(LEDGER)
        return seen is not None and seen.leader == node

    def settles(self) -> bool:
        """Whether the cluster becomes whole again."""
        return self.eventually(lambda: not unsettled(self.target, [LEDGER]))

    def end_offset(self, node: str) -> int:
        """Of the replica of ``node``, as soon as it tells."""
        told: list[ReplicaView] = []

        def tells() -> bool:
            replica = self.target.replica(node, LEDGER)
            told.extend([replica] if replica is not None else [])
            return bool(told)

        assert self.eventually(tells)
        return told[0].log_end_offset

    def needs(self, *controls: type[Target]) -> None:
        """Skip the test where the target does not say that it can do that."""
        for control in controls:
            if control not in self.target.controls:
                pytest.skip(f"target {self.target.name} does not support {control.__name__}")

    def needs_to_start_cut_off(self) -> None:
        """Skip the rest of the test where a broker does not come up that hears nothing of one peer."""
        if not self.starts_cut_off:
            pytest.skip("that peer may be the active controller")

    @contextmanager
    def in_effect(self, **written: object) -> Iterator[Fault]:
        """Inject a fault, and leave the cluster whole again; skip the test where the target cannot do it."""
        self.needs(faults.KINDS[str(written["fault"])].needs)
        fault = faults.parse(written, "test").aimed(self.target.view(), seed=1)
        fault.inject(self.target)
        try:
            yield fault
        finally:
            assert self.eventually(partial(_heals, fault, self.target))
            assert self.settles()


def _heals(fault: Fault, target: Target) -> bool:
    """Heal as the nemesis does, which tries again when it is refused: a broker may be about to halt just now."""
    try:
        fault.heal(target)
        return fault.probe_healed(target).holds
    except EnvironmentFault:
        return False


def _builtin(path: Path) -> Trial:
    target = BuiltinTarget(path, BROKERS, generation(CURRENT_GENERATION), SETTINGS)
    return Trial(target, SystemClock(), partial(send_once, target))


def _process(version: str, path: Path, control: Control = Control.ONE) -> Trial:
    distribution = fetched_or_skip(version)
    settings = understood({"min.insync.replicas": 2, "default.replication.factor": 3}, distribution.release, BROKERS)
    target = ProcessTarget(path, BROKERS, LocalKafka(distribution, control), settings)
    starts_cut_off = control is not Control.COMBINED
    return Trial(target, SystemClock(), partial(send_once, target), patience_s=60.0, starts_cut_off=starts_cut_off)


def _compose(version: str, path: Path, file: str = "kafka-kraft.yml", *, starts_cut_off: bool = True) -> Trial:
    """A file that is shipped, with images that are here already: those of ``compose/images/build.py``."""
    try:
        with closing(connected()) as engine:
            for image in (f"seawall/kafka:{version}", "seawall/tools", "seawall/toxiproxy"):
                if not has_image(engine, image):
                    pytest.skip(f"image {image} is missing: python compose/images/build.py builds it")
        kafka = find(read(str(_SHIPPED / file)))
    except EnvironmentFault as missing:
        pytest.skip(str(missing))
    settings = understood({"min.insync.replicas": 2, "default.replication.factor": 3}, kafka.release, BROKERS)
    target = ComposeTarget(path, kafka, settings)
    send = partial(send_once, target)
    return Trial(target, SystemClock(), send, patience_s=90.0, counts_bytes=False, starts_cut_off=starts_cut_off)


def fetched_or_skip(version: str) -> Distribution:
    """A release of Kafka, from the cache or from wherever Maven gets it; where it cannot, the test is skipped."""
    try:
        java()
        return fetch(version)
    except EnvironmentFault as missing:
        pytest.skip(str(missing))


EVERY_RELEASE = pytest.mark.nightly("starts real Kafka of each release; by day of the newest")
REAL_KAFKA = pytest.mark.nightly("starts real Kafka; by day the same is asked of the built-in and the simulated target")


def all_but(*quick: str) -> list[object]:
    """Every release that is tried, as a parameter; all but these are for the night."""
    return [pytest.param(name, marks=[] if name in quick else [EVERY_RELEASE]) for name in TRIED]


def send_once(target: Target, one: ProducerRecord, acks: int) -> Answer:
    """Send one record as a client of its own does, and wait for its answer."""
    sender = Sender(Access(target.bootstrap()), "test", acks, _SEND_TIMEOUT_S, logging.getLogger("seawall.tests"))
    try:
        return sender.send(LEDGER, one)
    finally:
        sender.close()


def _simulated(path: Path) -> Trial:
    target = SimulatedTarget.made(path, BROKERS, generation(CURRENT_GENERATION), SETTINGS, seed=1)

    def send(one: ProducerRecord, acks: int) -> Answer:
        client = Client(target.cluster.network(), addresses(target.bootstrap()), "test")
        sending = Task(Producer(client, acks, _SEND_TIMEOUT_S).send_batch(LEDGER, [one]))
        assert target.clock.sleep_until(lambda: sending.is_done, 2 * _SEND_TIMEOUT_S)
        client.close()
        answers = sending.result()
        assert answers is not None
        return answers[0]

    return Trial(target, target.clock, send)


TARGETS: dict[str, Callable[[Path], Trial]] = {
    "builtin": _builtin,
    "simulated": _simulated,
    "process:2.8.1": partial(_process, "2.8.1"),
    "process:4.1.0": partial(_process, "4.1.0"),
    "process:4.1.0#quorum": partial(_process, "4.1.0", control=Control.QUORUM),
    "process:4.1.0#combined": partial(_process, "4.1.0", control=Control.COMBINED),
    "compose:4.1.0": partial(_compose, "4.1.0"),
    "compose:4.1.0#combined": partial(_compose, "4.1.0", file="kafka-toxiproxy.yml", starts_cut_off=False),
}

NAMES = [pytest.param(name, marks=[REAL_KAFKA] if ":" in name else []) for name in TARGETS]
"""Of the targets, as parameters of a test."""

REAL_TIME = pytest.mark.nightly(
    "restarts processes of the built-in cluster for a case like another; by day the simulated target has it"
)
IN_VIRTUAL_TIME_BY_DAY = pytest.mark.parametrize(
    "trial",
    [pytest.param(*one.values, marks=[REAL_TIME] if one.values == ("builtin",) else one.marks) for one in NAMES],
    indirect=True,
    scope="module",
)
"""For a test that by day asks the simulated target alone."""


@contextmanager
def on_trial(name: str, path: Path) -> Iterator[Trial]:
    """The target ``name``, started, with its topic; stopped in the end."""
    with pytest.MonkeyPatch.context() as environment:
        version, _, _ = name.partition(":")[2].partition("#")
        environment.setenv("KAFKA_IMAGE", f"seawall/kafka:{version}")
        environment.setenv(TOXIPROXY_IMAGE, "seawall/toxiproxy")
        trial = TARGETS[name](path)
        try:
            trial.target.start()
            trial.target.create_topic(TopicSpec(LEDGER.topic, 1, BROKERS, (tuple(map(NodeId, range(BROKERS))),)))
            yield trial
        finally:
            trial.target.stop()
