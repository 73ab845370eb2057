"""Makes a plan: a scenario resolved and validated for a target and a generation, before anything starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import workloads
from harness.controls import Elections, WireTaps
from harness.errors import UsageError
from harness.fault import Fault, nodes_named_by
from harness.model import TopicPartition, partition_named
from harness.observations import BrokerEvidence, CommittedOffsets, NodeStates, ReplicaStates
from harness.replication.knobs import CURRENT_GENERATION
from harness.replication.knobs import generation as knobs_of
from harness.runner.client_libraries import require_client
from harness.runner.expectation import NO_FORECAST, Forecast, forecast
from harness.runner.planned_chaos import PlannedChaos, path_of, planned_chaos, refusal
from harness.runner.planned_schedule import (
    NODE_FIELDS,
    PlannedSchedule,
    planned_schedule,
    refuse_names_given_twice,
    refuse_overlaps,
)
from harness.runner.quorum import undecided, without_quorum
from harness.runner.topics import as_named_on, topic_spec, with_topics
from harness.scenario import Scenario, checked_seed, with_overrides
from harness.schedule import Step
from harness.selection import is_of_a_quorum
from harness.spelling import as_text, closest
from harness.target import Target, TopicSpec, includes
from harness.targets.kafka.layout import Control
from harness.targets.kafka.system import knows_idempotence
from harness.targets.kinds import BUILTIN, is_in_virtual_time, source_of
from harness.targets.system import SpokenProtocol, System
from harness.workload import Circumstances, Features, WorkloadParameters

_KNOB_GROUP = "replication."


@dataclass(frozen=True, slots=True)
class Plan:
    """The resolved scenario of a run.

    Attributes:
        scenario: with every override applied.
        seed: 0 <= seed < 2**63.
        overrides: ``--set`` keys and values.
        system: what runs, and on which target.
        workload: of the scenario, as the system's clients run it.
        schedule: without steps for random faults.
        chaos: the random faults; None for a schedule.
        forecast: what is expected of the run.
    """

    scenario: Scenario
    seed: int
    overrides: Mapping[str, str]
    system: System
    workload: WorkloadParameters
    schedule: PlannedSchedule
    chaos: PlannedChaos | None
    forecast: Forecast

    @property
    def target(self) -> str:
        """As ``--target`` spells it."""
        return self.system.spelling

    @property
    def generation(self) -> str:
        """The name of the generation of the replication protocol."""
        return self.system.protocol.generation

    @property
    def topics(self) -> list[TopicSpec]:
        """The topics to create."""
        asked = [topic_spec(topic) for topic in self.scenario.topics]
        return [*asked, *(() if self.workload.sends_to_own_topics else self.workload.own_topics(asked))]

    @property
    def partitions(self) -> list[TopicPartition]:
        """Every partition of the scenario, in order."""
        topics = self.scenario.topics
        return sorted(TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions))

    def resolved(self) -> dict[str, Any]:
        """The whole configuration as plain data, defaults included, without steps and faults that do not come up."""
        scenario = self.scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
        if self.schedule.steps:
            scenario["schedule"] = [scenario["schedule"][index] for index in self.schedule.steps]
        left_out = {} if self.chaos is None else self.chaos.left_out
        if left_out:
            mix = enumerate(scenario["chaos"]["faults"])
            scenario["chaos"]["faults"] = [fault for index, fault in mix if index not in left_out]
        return {
            "target": self.target,
            "scenario": scenario,
            "knobs": asdict(self.system.protocol.knobs),
            **self.system.configuration(),
            "workload": {"name": self.scenario.workload.name, **self.workload.model_dump(mode="json")},
            "duration_s": None if self.chaos is None else self.chaos.duration_s,
            **({"left_out": list(left_out.values())} if left_out else {}),
        }


def plan(
    scenario: Scenario,
    target: str = BUILTIN,
    generation: str | None = None,
    seed: int = 0,
    *,
    duration_s: float | None = None,
    overrides: Mapping[str, str] = MappingProxyType({}),
    tap: bool = False,
) -> Plan:
    """Look up and validate everything that ``scenario`` names.

    Args:
        scenario: see :func:`harness.scenario.load`.
        target: as ``--target`` spells it; see :mod:`harness.targets.kinds`.
        generation: of the replication protocol; None: the scenario's own, else the current one. Real Kafka has its own.
        seed: 0 <= seed < 2**63.
        duration_s: how long random faults go on; None: as in the scenario.
        overrides: ``--set`` keys and values.
        tap: whether to record requests and responses, even if the scenario does not ask for it.

    Raises:
        UsageError: names what is wrong, and where.
        EnvironmentFault: this machine has no such release of Kafka, or no Docker engine or Compose.
    """
    scenario = with_overrides(scenario, overrides)
    if tap:
        scenario = scenario.model_copy(update={"tap": True})
    source = source_of(target)
    if source.generation is not None and generation not in (None, source.generation):
        spoken = f"target {target!r} speaks generation {source.generation}, not {generation}."
        raise UsageError(spoken, "Leave --generation out.")
    name = source.generation or generation or scenario.generation or CURRENT_GENERATION
    switched = {key: text for key, text in overrides.items() if key.startswith(_KNOB_GROUP)}
    source.refuse_switches(switched)
    changed = {key.removeprefix(_KNOB_GROUP): text for key, text in switched.items()}
    protocol = SpokenProtocol(name, knobs_of(name, {**source.knobs, **_knobs(scenario), **changed}))
    with _named(scenario):
        system = source.system(target, protocol, scenario)
    scenario = as_named_on(system, scenario)
    if scenario.chaos is None and duration_s is not None:
        raise UsageError(f"scenario {scenario.id!r} is a schedule: its steps say how long it takes.")
    seed = checked_seed(seed)
    with _named(scenario):
        schedule = planned_schedule(scenario.schedule or (), name)
        chaos = planned_chaos(scenario, duration_s, seed, system)
        expected = forecast(scenario, name)
    workload = _workload(scenario, system.release or name, overrides).with_prefix(system.prefix)
    if workload.sends_to_own_topics:
        scenario = with_topics(scenario, workload)
    made = Plan(
        scenario, seed, dict(overrides), system, workload, schedule, chaos, NO_FORECAST if changed else expected
    )
    with _named(scenario):
        _refuse_the_impossible(made)
        _refuse_transactions(scenario, workload, system)
        _refuse_consumer_protocol(workload, system)
        _refuse_tap(scenario, system)
        _refuse_unobserved_deletions(workload, system)
        workload.refuse(_circumstances(made))
    require_client(workload, target, system.client, in_virtual_time=is_in_virtual_time(target))
    return made


def _circumstances(made: Plan) -> Circumstances:
    system = made.system
    fences_members = system.protocol.knobs.transactional_offsets == "fenced"
    features = Features(system.carried, fences_members, system.share_bounds)
    topics = [topic_spec(topic) for topic in made.scenario.topics]
    return Circumstances(made.target, is_in_virtual_time(made.target), features, topics, bool(made.schedule.sends()))


@contextmanager
def _named(scenario: Scenario) -> Iterator[None]:
    """Prefix errors in a scenario with the name of its file."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{scenario.origin}: {error.sentence}", error.remedy) from None


def _workload(scenario: Scenario, version: str, overrides: Mapping[str, str]) -> WorkloadParameters:
    """The scenario's workload; without idempotence for a cluster that does not have it yet.

    One that ``--set workload.name`` has put in its place takes over those of its parameters that it knows, too.
    """
    name, parameters = scenario.workload.name, scenario.workload.parameters()
    if "workload.name" in overrides and name in workloads.KINDS:
        known = workloads.KINDS[name].parameters.model_fields
        parameters = {key: one for key, one in parameters.items() if key in known or f"workload.{key}" in overrides}
    written = workloads.parse(name, parameters)
    return written if knows_idempotence(version) else written.without_numbers()


def _knobs(scenario: Scenario) -> dict[str, str]:
    """The knobs that the scenario itself sets, as ``--set`` would spell them."""
    return {knob: as_text(value) for knob, value in scenario.replication.items()}


def _refuse_transactions(scenario: Scenario, workload: WorkloadParameters, system: System) -> None:
    """Refuse them where there are none yet, and those with an epoch each where there are no such yet."""
    knobs = system.protocol.knobs
    sends = [step.send for step in scenario.schedule or () if step.send is not None]
    if knobs.transactions != "numbered" and any(send.transaction_version for send in sends):
        raise UsageError(
            f"it runs transactions of version 2, which {system.version} does not know.", "Run it on 4.0 or later."
        )
    if knobs.transactions == "none" and (scenario.transacts or workload.transacts):
        raise UsageError(f"it runs transactions, which {system.version} does not know.", "Run it on 0.11 or later.")


def _refuse_consumer_protocol(workload: WorkloadParameters, system: System) -> None:
    """Refuse groups of the consumer protocol where coordinators do not offer it."""
    if workload.assigned_by_coordinators and not system.protocol.knobs.consumer_protocol:
        raise UsageError(
            f"workload: it has groups of the consumer protocol (KIP-848), which {system.version} does not offer.",
            "Run it on 4.0 or later, or set workload.protocol to [classic].",
        )


def _refuse_tap(scenario: Scenario, system: System) -> None:
    """Refuse to record what no node, and no proxy, of the target can."""
    if scenario.tap and WireTaps not in system.controls:
        raise UsageError(f"target {system.spelling!r} has no wire tap.", "Leave --tap, or `tap: true`, out.")


def _refuse_unobserved_deletions(workload: WorkloadParameters, system: System) -> None:
    """Refuse to delete records where only brokers could say which ones, and none is observed."""
    if workload.deletes_records and not includes(system.controls, BrokerEvidence):
        raise UsageError(
            f"workload: it deletes records, and target {system.spelling!r} does not say which ones were.",
            "Run it on --target builtin, simulated, process:RELEASE or compose:FILE.",
        )


def _refuse_the_impossible(made: Plan) -> None:
    scenario, system, schedule = made.scenario, made.system, made.schedule
    brokers, log_dirs = scenario.cluster.brokers, system.known_settings().log_dirs_count
    paths = [(schedule.path(index), fault) for index, fault in schedule.faults.items()]
    if made.chaos is not None:
        paths += [(path_of(index), chosen.fault) for index, chosen in made.chaos.faults.items()]
    for path, fault in paths:
        if (refused := refusal(path, fault, system)) is not None:
            raise refused
        _refuse_unknown_nodes(path, fault, brokers, system)
        _refuse_unknown_log_dir(path, fault, log_dirs)
        _refuse_unknown_partition(path, scenario, getattr(fault, "topic", None), getattr(fault, "partition", None))
    _refuse_short_sessions(made)
    for index, step in schedule.steps.items():
        _refuse_the_impossible_step(schedule.path(index), step, scenario, system)
    coming = schedule.coming(brokers, system.control, made.seed)
    refuse_overlaps(schedule, coming)
    if system.control is Control.COMBINED:
        for index, hear in undecided(brokers, schedule.steps, coming):
            raise without_quorum(schedule.path(index), system.spelling, hear, brokers)
    for partition in made.partitions:
        refuse_names_given_twice(schedule, partition)


def _refuse_short_sessions(made: Plan) -> None:
    least_s, session_s = made.system.known_settings().group_min_session_timeout_ms / 1000, made.workload.session_s
    if session_s is not None and session_s < least_s:
        raise UsageError(
            f"workload {made.scenario.workload.name}: members of groups ask for a session of {session_s:g} s, and the "
            f"brokers of target {made.target!r} refuse one below {least_s:g} s (group.min.session.timeout.ms).",
            f"Set the workload's session_timeout_s to {least_s:g}.",
        )


def _refuse_the_impossible_step(path: str, step: Step, scenario: Scenario, system: System) -> None:
    if step.elect is not None and Elections not in system.controls:
        raise UsageError(f"{path}: target {system.spelling!r} cannot be asked for an election.")
    for protocol, asked in _observations(step):
        if asked and not includes(system.controls, protocol):
            raise UsageError(f"{path}: target {system.spelling!r} cannot tell {asked}.")
    if step.where is not None:
        _refuse_unknown_partition(path, scenario, step.where.topic, step.where.partition)
    for name in step.partitions:
        _refuse_unknown_partition(path, scenario, *partition_named(name))
    _refuse_unknown_brokers(path, step.brokers, system.broker_numbers(scenario.cluster.brokers))


def _observations(step: Step) -> Iterator[tuple[type[Target], str]]:
    """What a step waits for that not every target can observe: by which protocol, in words; empty: it does not."""
    until = step.until
    if until is not None:
        yield ReplicaStates, "what a broker holds" if until.replicas else ""
        yield NodeStates, "whether a broker has exited" if until.exited else ""
        yield CommittedOffsets, "what a group has committed" if until.committed else ""


def _refuse_unknown_nodes(path: str, fault: Fault, brokers: int, system: System) -> None:
    named = nodes_named_by(fault, NODE_FIELDS)
    _refuse_unknown_brokers(path, (node for node in named if isinstance(node, int)), system.broker_numbers(brokers))
    for node in named:
        if is_of_a_quorum(node) and node not in system.control.controllers(brokers):
            raise UsageError(
                f"{path}: there is no node {node!r} in target {system.spelling!r}.",
                "Take --target process:RELEASE#quorum, which has controller-1 to controller-3.",
            )


def _refuse_unknown_log_dir(path: str, fault: Fault, log_dirs: int) -> None:
    named = getattr(fault, "log_dir", None)
    if named is not None and named >= log_dirs:
        raise UsageError(
            f"{path}: there is no log directory {named}: each broker has {log_dirs}.",
            "Set log.dirs.count to have more.",
        )


def _refuse_unknown_brokers(path: str, nodes: Iterable[int], brokers: Sequence[int]) -> None:
    for node in nodes:
        if node not in brokers:
            there = f"0 to {len(brokers) - 1}" if isinstance(brokers, range) else ", ".join(map(str, brokers))
            raise UsageError(f"{path}: there is no broker {node}; the brokers are {there}.")


def _refuse_unknown_partition(path: str, scenario: Scenario, topic: str | None, partition: int | None) -> None:
    topics = {known.name: known.partitions for known in scenario.topics}
    if topic is not None and topic not in topics:
        raise UsageError(f"{path}: unknown topic {topic!r}; {closest(topic, topics)}")
    largest = max(topics.values()) if topic is None else topics[topic]
    if partition is not None and not 0 <= partition < largest:
        raise UsageError(f"{path}: there is no partition {partition}; the partitions are 0 to {largest - 1}.")
