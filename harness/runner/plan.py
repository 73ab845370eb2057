"""Makes a plan: a scenario resolved and validated for a target and a generation, before anything starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

import faults
import workloads
from harness.broker.settings import Settings
from harness.controls import Elections, WireTaps
from harness.errors import UsageError
from harness.fault import Fault
from harness.model import CONTROLLER, NodeId, TopicPartition, partition_named
from harness.replication.knobs import CURRENT_GENERATION, Knobs
from harness.replication.knobs import generation as knobs_of
from harness.runner.client_libraries import require_client
from harness.runner.expectation import expectations, performed, predictions
from harness.runner.fault_budget import Promise
from harness.runner.quorum import Coming, undecided, without_quorum
from harness.runner.real import configured, knows_idempotence, named_by, real_kafka
from harness.runner.system import BuiltInSystem, System
from harness.runner.topics import topic_spec, with_topics
from harness.scenario import NUMBERED, Expectation, Prediction, Scenario, checked_seed, with_overrides
from harness.schedule import Step
from harness.selection import ANY, FOLLOWER, LEADER, is_of_a_quorum
from harness.spelling import closest
from harness.steps import LONGEST_S, meant
from harness.target import ClusterView, TopicSpec
from harness.targets.kafka.layout import Control
from harness.targets.kinds import BUILTIN, cluster_kind, is_in_virtual_time
from harness.workload import Circumstances, WorkloadParameters

_KNOB_GROUP = "replication."
_NODE_FIELDS = ("node", "isolate", "between", "links")


@dataclass(frozen=True, slots=True)
class ChaosFault:
    """A fault of a random mix: how often it comes up in a round, and how long it lasts (shortest, longest)."""

    fault: Fault
    weight: int
    for_s: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Plan:
    """The resolved scenario of a run.

    Attributes:
        scenario: with every override applied.
        chaos_faults: the mix, of a chaos scenario.
        steps: those of the schedule that are performed on the generation, by their index.
        steps_faults: the fault of each ``inject`` and ``hold`` step, by the step's index.
        predictions: the anomalies to expect; empty when a knob of the generation was overridden, because then
            it is not that generation any more.
        expectation: the outcome to expect; None when there is none, or a knob was overridden.
        duration_s: how long chaos lasts at least; None for a schedule.
        system: what runs.
        left_out: why a fault of the random mix does not come up, by its index: containers support fewer faults, and not
            every cluster promises to survive every fault.
    """

    scenario: Scenario
    target: str
    generation: str
    knobs: Knobs
    settings: Settings
    seed: int
    duration_s: float | None
    workload: WorkloadParameters
    steps: Mapping[int, Step]
    steps_faults: Mapping[int, Fault]
    chaos_faults: tuple[ChaosFault, ...]
    predictions: tuple[Prediction, ...]
    expectation: Expectation | None
    overrides: Mapping[str, str]
    system: System
    left_out: Mapping[int, str] = field(default_factory=dict)

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
        if self.steps:
            scenario["schedule"] = [scenario["schedule"][index] for index in self.steps]
        if self.left_out:
            mix = enumerate(scenario["chaos"]["faults"])
            scenario["chaos"]["faults"] = [fault for index, fault in mix if index not in self.left_out]
        return {
            "target": self.target,
            "scenario": scenario,
            "knobs": asdict(self.knobs),
            **self.system.configuration(),
            "workload": {"name": self.scenario.workload.name, **self.workload.model_dump(mode="json")},
            "duration_s": self.duration_s,
            **({"left_out": list(self.left_out.values())} if self.left_out else {}),
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
    source = real_kafka(target)
    spoken = None if source is None else source.release.generation
    if spoken is not None and generation not in (None, spoken):
        raise UsageError(f"target {target!r} speaks generation {spoken}, not {generation}.", "Leave --generation out.")
    name = spoken or generation or scenario.generation or CURRENT_GENERATION
    changed = {key.removeprefix(_KNOB_GROUP): text for key, text in overrides.items() if key.startswith(_KNOB_GROUP)}
    family = {} if source is None else source.release.family.knobs
    knobs = knobs_of(name, {**family, **_knobs(scenario), **({} if source else changed)})
    system: System
    if source is None:
        system = _built_in(scenario, target, name, knobs)
    else:
        with _named(scenario):
            system = configured(target, source, scenario, overrides)
    with _named(scenario):
        steps = dict(performed(scenario.schedule or (), name))
        steps_faults = dict(_steps_faults(steps))
        chaos_faults, left_out = _possible(tuple(_chaos_faults(scenario)), system)
        predicted, expected = predictions(scenario, name), expectations(scenario).get(name)
    made = Plan(
        scenario=scenario,
        target=target,
        generation=name,
        knobs=knobs,
        settings=system.known_settings(),
        seed=checked_seed(seed),
        duration_s=_duration_s(scenario, duration_s),
        workload=_workload(scenario, system.release or name, overrides),
        steps=steps,
        steps_faults=steps_faults,
        chaos_faults=chaos_faults,
        predictions=() if changed else predicted,
        expectation=None if changed else expected,
        overrides=dict(overrides),
        system=system,
        left_out=left_out,
    )
    if made.workload.sends_to_own_topics:
        made = replace(made, scenario=with_topics(scenario, made.workload))
    with _named(scenario):
        made = _within_the_budget(made)
        _refuse_the_impossible(made)
        _refuse_transactions(made)
        _refuse_consumer_protocol(made)
        _refuse_tap(made)
        made.workload.refuse(_circumstances(made))
    require_client(made.workload, target, in_virtual_time=is_in_virtual_time(target))
    return made


def _circumstances(made: Plan) -> Circumstances:
    return Circumstances(
        made.target, is_in_virtual_time(made.target), made.system.carried,
        [topic_spec(topic) for topic in made.scenario.topics],
        any(step.send is not None for step in made.steps.values()),
        made.knobs.transactional_offsets == "fenced",
        made.system.has_share_groups,
    )  # fmt: skip


def _built_in(scenario: Scenario, target: str, generation: str, knobs: Knobs) -> BuiltInSystem:
    cluster = scenario.cluster
    return BuiltInSystem(
        cluster_kind(target), generation, knobs, cluster.brokers, cluster.settings, _settings(scenario)
    )


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


def _settings(scenario: Scenario) -> Settings:
    try:
        settings = Settings.parse(dict(scenario.cluster.settings))
    except UsageError as error:
        raise UsageError(f"cluster.settings: {error.sentence}", error.remedy) from None
    if settings.replica_fetch_wait_max_ms >= settings.replica_socket_timeout_ms:
        raise UsageError(
            f"cluster.settings: replica.fetch.wait.max.ms, {settings.replica_fetch_wait_max_ms}, is not below "
            f"replica.socket.timeout.ms, {settings.replica_socket_timeout_ms}: every parked fetch would time out."
        )
    if settings.broker_heartbeat_interval_ms >= settings.broker_session_timeout_ms:
        raise UsageError(
            f"cluster.settings: broker.heartbeat.interval.ms, {settings.broker_heartbeat_interval_ms}, is not below "
            f"broker.session.timeout.ms, {settings.broker_session_timeout_ms}: every session would expire."
        )
    return settings


def _duration_s(scenario: Scenario, asked: float | None) -> float | None:
    if scenario.chaos is None:
        if asked is not None:
            raise UsageError(f"scenario {scenario.id!r} is a schedule: its steps say how long it takes.")
        return None
    duration_s = scenario.duration_s if asked is None else asked
    if not 0 < duration_s <= LONGEST_S:
        raise UsageError(
            f"duration {duration_s:g} s is out of range.", f"Durations are greater than 0 and at most {LONGEST_S}."
        )
    return duration_s


def _steps_faults(steps: Mapping[int, Step]) -> Iterable[tuple[int, Fault]]:
    for index, step in steps.items():
        if step.hold is not None:
            yield index, faults.parse({"fault": "partition", "links": step.hold.links}, f"schedule[{index}].hold")
        elif step.inject is not None:
            path = f"schedule[{index}].inject"
            written = dict(step.inject)
            if not isinstance(written.pop("as", None), str):
                raise UsageError(f"{path}: 'as' is missing: a later step heals the fault by that name.")
            yield index, faults.parse(written, path)


def _chaos_faults(scenario: Scenario) -> Iterable[ChaosFault]:
    if scenario.chaos is None:
        return
    for index, mapping in enumerate(scenario.chaos.faults):
        path = f"chaos.faults[{index}]"
        written = dict(mapping)
        weight = written.pop("weight", 1)
        if not isinstance(weight, int) or isinstance(weight, bool) or not 1 <= weight <= 100:
            raise UsageError(f"{path}.weight: {weight!r} is not a whole number from 1 to 100.")
        for_s = _span(written.pop("for_s", scenario.chaos.for_s), f"{path}.for_s")
        yield ChaosFault(faults.parse(written, path), weight, for_s)


def _span(written: Any, path: str) -> tuple[float, float]:
    match written:
        case [int() | float() as shortest, int() | float() as longest] if (
            0 <= shortest <= longest <= LONGEST_S and not isinstance(shortest, bool) and not isinstance(longest, bool)
        ):
            return float(shortest), float(longest)
        case _:
            raise UsageError(f"{path}: {written!r} is not [shortest, longest] in seconds.")


def _knobs(scenario: Scenario) -> dict[str, str]:
    """The knobs that the scenario itself sets, as ``--set`` would spell them."""
    return {
        knob: str(value).lower() if isinstance(value, bool) else value for knob, value in scenario.replication.items()
    }


def _refuse_transactions(made: Plan) -> None:
    """Refuse them where there are none yet, and those with an epoch each where there are no such yet."""
    version = made.system.release or f"generation {made.generation}"
    sends = [step.send for step in made.scenario.schedule or () if step.send is not None]
    if made.knobs.transactions != "numbered" and any(send.transaction_version for send in sends):
        raise UsageError(
            f"it runs transactions of version 2, which {version} does not know.", "Run it on 4.0 or later."
        )
    if made.knobs.transactions == "none" and (made.scenario.transacts or made.workload.transacts):
        raise UsageError(f"it runs transactions, which {version} does not know.", "Run it on 0.11 or later.")


def _refuse_consumer_protocol(made: Plan) -> None:
    """Refuse groups of the consumer protocol where coordinators do not offer it."""
    if made.workload.assigned_by_coordinators and not made.knobs.consumer_protocol:
        version = made.system.release or f"generation {made.generation}"
        raise UsageError(
            f"workload: it has groups of the consumer protocol (KIP-848), which {version} does not offer.",
            "Run it on 4.0 or later, or set workload.protocol to [classic].",
        )


def _refuse_tap(made: Plan) -> None:
    """Refuse to record what no node, and no proxy, of the target can."""
    if made.scenario.tap and WireTaps not in made.system.controls:
        raise UsageError(f"target {made.target!r} has no wire tap.", "Leave --tap, or `tap: true`, out.")


def _refuse_the_impossible(made: Plan) -> None:
    paths = [(_path(made, index), fault) for index, fault in made.steps_faults.items()]
    paths += [(f"chaos.faults[{index}]", chosen.fault) for index, chosen in enumerate(made.chaos_faults)]
    for path, fault in paths:
        if (refusal := _refusal(path, fault, made.system)) is not None:
            raise refusal
        _refuse_unknown_nodes(path, fault, made)
        _refuse_unknown_log_dir(path, fault, made.settings.log_dirs_count)
        _refuse_unknown_partition(path, made.scenario, getattr(fault, "topic", None), getattr(fault, "partition", None))
    for index, step in made.steps.items():
        if step.elect is not None and Elections not in made.system.controls:
            raise UsageError(f"{_path(made, index)}: target {made.target!r} cannot be asked for an election.")
        if step.where is not None:
            _refuse_unknown_partition(_path(made, index), made.scenario, step.where.topic, step.where.partition)
        for name in step.partitions:
            _refuse_unknown_partition(_path(made, index), made.scenario, *partition_named(name))
        _refuse_unknown_brokers(_path(made, index), step.brokers, made.scenario.cluster.brokers)
    coming = _coming(made)
    _refuse_overlaps(made, coming)
    if made.system.control is Control.COMBINED:
        for index, hear in undecided(made.scenario.cluster.brokers, made.steps, coming):
            raise without_quorum(_path(made, index), made.target, hear, made.scenario.cluster.brokers)
    for partition in made.partitions:
        _refuse_names_given_twice(made, partition)


def _refusal(path: str, fault: Fault, system: System) -> UsageError | None:
    """Why the system does not support that fault; None: it does."""
    unsupported = system.unsupported(fault)
    return None if unsupported is None else UsageError(f"{path}: {unsupported.what}", unsupported.remedy)


def _possible(chosen: tuple[ChaosFault, ...], system: System) -> tuple[tuple[ChaosFault, ...], Mapping[int, str]]:
    """The faults of a random mix that the system supports, if it leaves others out, and why it does.

    If none would be left, all are kept, to be refused.
    """
    if not system.leaves_faults_out:
        return chosen, {}
    left_out = {
        index: str(refusal)
        for index, one in enumerate(chosen)
        if (refusal := _refusal(f"chaos.faults[{index}]", one.fault, system)) is not None
    }
    if len(left_out) == len(chosen):
        return chosen, {}
    return tuple(one for index, one in enumerate(chosen) if index not in left_out), left_out


def _within_the_budget(made: Plan) -> Plan:
    """``made`` without the random faults that its budget never allows, and why not.

    Raises:
        UsageError: none would be left.
    """
    chaos = made.scenario.chaos
    if chaos is None or chaos.at_once == 1 or chaos.budget == "any":
        return made
    promise = Promise.of(made.settings, made.knobs, starts_cut_off=made.system.starts_cut_off)
    numbers = [index for index in range(len(chaos.faults)) if index not in made.left_out]
    refused = {
        index: f"chaos.faults[{index}]: {one.fault.kind!r} is not within budget 'promised': {why}."
        for index, one in zip(numbers, made.chaos_faults, strict=True)
        if (why := promise.never_affords(one.fault))
    }
    kept = [one for index, one in zip(numbers, made.chaos_faults, strict=True) if index not in refused]
    if not kept:
        raise UsageError(next(iter(refused.values())), "Set chaos.budget=any to have it all the same.")
    return replace(made, chaos_faults=tuple(kept), left_out={**made.left_out, **refused})


def _path(made: Plan, index: int) -> str:
    return f"schedule[{index}].{made.steps[index].kind}"


def _coming(made: Plan) -> dict[int, Coming]:
    """Each fault of the schedule with its claims, unless selectors resolve only during the run."""
    view = ClusterView(0, tuple(map(NodeId, range(made.scenario.cluster.brokers))), {})
    aimed_later = (LEADER, FOLLOWER, ANY, *((CONTROLLER,) if made.system.control is not Control.ONE else ()))
    return {
        index: Coming(fault, None if is_later else fault.aimed(view, made.seed).claims())
        for index, fault in made.steps_faults.items()
        for is_later in [any(word in aimed_later for word in named_by(fault, _NODE_FIELDS))]
    }


def _refuse_overlaps(made: Plan, coming: Mapping[int, Coming]) -> None:
    """Refuse simultaneous faults with the same claims; where selectors resolve later, the nemesis does it."""
    claimed: dict[str, str] = {}
    for index, step in made.steps.items():
        claimed = {claim: name for claim, name in claimed.items() if name not in (step.heal, step.release)}
        for claim in (coming[index].claims or ()) if index in coming else ():
            if claim in claimed:
                raise UsageError(
                    f"{_path(made, index)}: {step.name!r} and {claimed[claim]!r}, which is in force, "
                    f"both need {claim} to themselves.",
                    f"Heal {claimed[claim]!r} first.",
                )
            claimed[claim] = step.name or ""


def _refuse_unknown_nodes(path: str, fault: Fault, made: Plan) -> None:
    named = named_by(fault, _NODE_FIELDS)
    brokers = made.scenario.cluster.brokers
    _refuse_unknown_brokers(path, (node for node in named if isinstance(node, int)), brokers)
    for node in named:
        if is_of_a_quorum(node) and node not in made.system.control.controllers(brokers):
            raise UsageError(
                f"{path}: there is no node {node!r} in target {made.target!r}.",
                "Take --target process:RELEASE#quorum, which has controller-1 to controller-3.",
            )


def _refuse_unknown_log_dir(path: str, fault: Fault, log_dirs: int) -> None:
    named = getattr(fault, "log_dir", None)
    if named is not None and named >= log_dirs:
        raise UsageError(
            f"{path}: there is no log directory {named}: each broker has {log_dirs}.",
            "Set log.dirs.count to have more.",
        )


def _refuse_unknown_brokers(path: str, nodes: Iterable[int], brokers: int) -> None:
    for node in nodes:
        if not 0 <= node < brokers:
            raise UsageError(f"{path}: there is no broker {node}; the brokers are 0 to {brokers - 1}.")


def _refuse_unknown_partition(path: str, scenario: Scenario, topic: str | None, partition: int | None) -> None:
    topics = {known.name: known.partitions for known in scenario.topics}
    if topic is not None and topic not in topics:
        raise UsageError(f"{path}: unknown topic {topic!r}; {closest(topic, topics)}")
    largest = max(topics.values()) if topic is None else topics[topic]
    if partition is not None and not 0 <= partition < largest:
        raise UsageError(f"{path}: there is no partition {partition}; the partitions are 0 to {largest - 1}.")


def _refuse_names_given_twice(made: Plan, partition: TopicPartition) -> None:
    """Refuse to give two records of ``partition`` the same name, which must identify a record."""
    given: set[str] = set()
    numbered: list[range] = []
    sent = 0
    for index, step in made.steps.items():
        if step.send is None or partition not in meant([partition], step.send):
            continue
        numbers = range(sent, sent + step.send.count)
        sent = numbers.stop
        if step.send.records is None:
            numbered.append(numbers)
            names = [name for name in given if _is_numbered(name, [numbers])]
        else:
            names = [name for name in step.send.records if name in given or _is_numbered(name, numbered)]
            names += [name for name, times in Counter(step.send.records).items() if times > 1]
            given.update(step.send.records)
        if names:
            raise UsageError(
                f"{_path(made, index)}: {partition} has been sent a record named {min(names)!r} already.",
                "Records of per_partition are m<n>, where n counts the records sent to the partition before.",
            )


def _is_numbered(name: str, rows: Iterable[range]) -> bool:
    """Whether ``name`` is ``m<n>`` with an n out of ``rows``."""
    found = NUMBERED.fullmatch(name)
    return found is not None and found[1] == "m" and any(int(found[2]) in row for row in rows)
