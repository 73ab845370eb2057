"""Stories: text files of commands and what the core did, after etcd raft's ``testdata``.

A story is a sequence of blocks: command lines, ``----``, the expected output, an empty line. ``#`` comments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.model import NO_LEADER, NodeId, TopicPartition
from harness.replication.controller import Controller
from harness.replication.controller_messages import (
    AnswerElection,
    AnswerHeartbeat,
    AnswerIsrChange,
    AnswerProducerIds,
    AnswerRegistration,
    AnswerTopicCreation,
    ControllerEffect,
    ControllerEvent,
    ControllerStarted,
    Elected,
    ElectionRequested,
    HeartbeatReceived,
    IsrChanged,
    IsrChangeRequested,
    PartitionState,
    Persist,
    ProducerIdsRequested,
    RegistrationRequested,
    SendMetadata,
    SendPartitionStates,
    SessionChanged,
    TopicCreationRequested,
)
from harness.replication.knobs import GENERATIONS
from harness.replication.knobs import generation as knobs_of
from harness.replication.messages import (
    AnswerDeleteRecords,
    AnswerFetch,
    AnswerProduce,
    Append,
    CheckpointEpochs,
    DeleteRecordsRequested,
    ErrorCode,
    HighWatermarkAdvanced,
    NextEpochLookup,
    NextFetch,
    ProduceExpired,
    ProposeIsr,
    RaiseLogStart,
    ReplicaEffect,
    ReplicaFailed,
    RetentionReached,
    StartLogAt,
    Tick,
    Truncate,
)
from tests.harness.replication.nodes import Message, Produced
from tests.harness.replication.world import Told, World


def tell_story(path: Path, teller: Callable[[], Any]) -> str:
    """The text of the story ``path`` with its output as it is now."""
    narrator = teller()
    told: list[str] = []
    for block in path.read_text().rstrip("\n").split("\n\n"):
        commands = block.split("\n----")[0].split("\n")
        if all(line.startswith("#") for line in commands):
            told.append("\n".join(commands))
            continue
        output = [line for command in commands if not command.startswith("#") for line in narrator.command(command)]
        told.append("\n".join([*commands, "----", *output]))
    return "\n\n".join(told) + "\n"


def _options(words: list[str]) -> tuple[list[str], dict[str, str]]:
    options = dict(word.split("=", 1) for word in words if "=" in word)
    return [word for word in words if "=" not in word], options


def tell_outcomes(path: Path) -> str:
    """The text of the story ``path``, which is played in every generation, with how it ends in each.

    Only what its explicit looks (``state``, ``logs``, ``outcome``) print is told, generations with the same ending
    together.
    """
    script = path.read_text().split("\n----")[0]
    endings: dict[str, list[str]] = {}
    for name in GENERATIONS:
        teller = WorldTeller(name)
        ending = [line for command in script.split("\n") for line in teller.look(command)]
        endings.setdefault("\n".join(f"  {line}" for line in ending), []).append(name)
    told = [f"{', '.join(names)}:\n{ending}" for ending, names in endings.items()]
    return "\n".join([script, "----", *told]) + "\n"


class WorldTeller:
    """Plays commands on a :class:`World` and prints what its nodes do."""

    def __init__(self, generation: str = "") -> None:
        self._generation = generation
        self._world: World | None = None
        self._lines: list[str] = []
        self._held: set[str] = set()

    @property
    def world(self) -> World:
        assert self._world is not None, "a story begins with 'cluster'"
        return self._world

    def command(self, line: str) -> list[str]:
        name, *words = line.split()
        arguments, options = _options(words)
        getattr(self, f"_do_{name.replace('-', '_')}")(*arguments, **options)
        if self._world is not None:
            self.world.settle(self._is_held)
        lines, self._lines = self._lines, []
        return lines

    def look(self, line: str) -> list[str]:
        """Play the command ``line``; what it prints, if it is one to look at something."""
        if not line or line.startswith("#"):
            return []
        printed = self.command(line)
        return printed if line.split(maxsplit=1)[0] in ("state", "logs", "outcome") else []

    def _is_held(self, message: Message) -> bool:
        return bool({message.kind, f"{message.kind}:{message.destination}"} & self._held)

    # ------------------------------------------------------------------------------------------------- commands

    def _do_cluster(self, **options: str) -> None:
        name = self._generation or options.pop("generation")
        nodes, min_isr = int(options.pop("nodes")), int(options.pop("min_isr"))
        lag_ms = int(options.pop("lag_ms", "2000"))
        unclean = options.pop("unclean", "false") == "true"
        self._world = World(knobs_of(name, options), nodes, min_isr, lag_ms=lag_ms, unclean=unclean)
        self.world.settle()
        self.world._tell = self._tell
        self._do_state()

    def _do_produce(self, node: str, *names: str, acks: str = "all") -> None:
        """One batch; ``m*3`` is short for ``m0 m1 m2``."""
        values = [value for name in names for value in _values(name)]
        self.world.produce(NodeId(int(node)), *values, acks={"all": -1}.get(acks) or int(acks))

    def _do_produce_timeout(self, *values: str) -> None:
        produced = next(produced for produced in self.world.produced if produced.values == values)
        for node in self.world.alive:
            self.world.handle(node, ProduceExpired(produced))

    def _do_fetch(self, *nodes: str) -> None:
        for node in nodes:
            self._lines.append(f"{node}: {_print_request(self.world.replica(NodeId(int(node))).next_request())}")
            self.world.fetch(NodeId(int(node)))
            self.world.settle(self._is_held)

    def _do_replicate(self, rounds: str = "4") -> None:
        """Let everybody fetch, silently, until all is quiet."""
        for _ in range(int(rounds)):
            for node in self.world.alive:
                self.world.fetch(node)
            self.world.settle(self._is_held)
        self._lines = []
        self._do_state()

    def _do_hold(self, *kinds: str) -> None:
        self._held |= set(kinds)

    def _do_deliver(self, *kinds: str) -> None:
        """In order of sending; from now on nothing of these kinds is held."""
        self._held -= set(kinds)

    def _do_drop(self, *kinds: str) -> None:
        """Lose what is held; from now on nothing of these kinds is held."""
        for message in [message for message in self.world.in_flight if self._is_held(message)]:
            if {message.kind, f"{message.kind}:{message.destination}"} & set(kinds):
                self.world.drop(message)
        self._held -= set(kinds)

    def _do_kill(self, *nodes: str) -> None:
        for node in nodes:
            self.world.kill(NodeId(int(node)))

    def _do_stop(self, node: str) -> None:
        self.world.stop(NodeId(int(node)))

    def _do_lose_power(self, node: str, *, batches: str) -> None:
        """A kill, after which the last batches are missing."""
        self.world.kill(NodeId(int(node)))
        self.world.brokers[NodeId(int(node))].lose(int(batches))

    def _do_wipe(self, node: str) -> None:
        self.world.brokers[NodeId(int(node))].wipe()

    def _do_elect(self, *, leader: str = "", unclean: str = "false") -> None:
        self.world.elect(NodeId(int(leader)) if leader else None, unclean=unclean == "true")

    def _do_delete_records(self, node: str, before: str) -> None:
        self.world.handle(NodeId(int(node)), DeleteRecordsRequested("client", int(before), 0))

    def _do_retention(self, node: str, before: str) -> None:
        self.world.handle(NodeId(int(node)), RetentionReached(int(before), 0))

    def _do_spoof(self, leader: str, *, follower: str, offset: str) -> None:
        self.world.spoof(NodeId(int(leader)), NodeId(int(follower)), int(offset))

    def _do_start(self, node: str) -> None:
        self.world.start(NodeId(int(node)))

    def _do_boot(self, node: str) -> None:
        """Start without registering: the controller hears nothing of it."""
        self.world.boot(NodeId(int(node)))

    def _do_bounce(self, node: str) -> None:
        self.world.bounce(NodeId(int(node)))

    def _do_expire(self, node: str) -> None:
        self.world.expire(NodeId(int(node)))

    def _do_heartbeat(self, node: str) -> None:
        self.world.heartbeat(NodeId(int(node)))

    def _do_impose(self, *, leader: str, epoch: str, isr: str, to: str = "", controller: str = "-1") -> None:
        some = tuple(NodeId(int(node)) for node in to.split(",") if node)
        self.world.impose(NodeId(int(leader)), int(epoch), _parse(isr), to=some, controller_epoch=int(controller))

    def _do_fetch_at_most(self, batches: str) -> None:
        self.world.fetch_batches = int(batches)

    def _do_checkpoint(self, node: str) -> None:
        self.world.checkpoint(NodeId(int(node)))

    def _do_fill_disk(self, node: str) -> None:
        self.world.brokers[NodeId(int(node))].disk_full = True

    def _do_tick(self, ms: str) -> None:
        self.world.tick(int(ms))

    def _do_clock(self, node: str, ms: str) -> None:
        """The clock of ``node`` steps to true time plus ``ms``."""
        self.world.step_clock(NodeId(int(node)), int(ms))

    def _do_state(self) -> None:
        for node, broker in self.world.brokers.items():
            replica = broker.replica
            if replica is None:
                self._lines.append(f"{node} dead leo={broker.log_end}")
                continue
            remote = "".join(f" remote{n}={end}" for n, end in replica.remote_log_end_offsets.items())
            start = f" start={replica.log_start_offset}" if replica.log_start_offset else ""
            self._lines.append(
                f"{node} {replica.role} epoch={replica.leader_epoch}{start} leo={replica.log_end_offset} "
                f"hw={replica.high_watermark} isr={_nodes(replica.isr)}{remote}"
            )

    def _do_logs(self) -> None:
        for node, broker in self.world.brokers.items():
            records = " ".join(f"{record.value}@{record.leader_epoch}" for record in broker.records)
            self._lines.append(f"{node} [{records}]")

    def _do_verdict(self) -> None:
        lost, diverged = self.world.lost(), self.world.diverged()
        self._lines.append(f"lost: {' '.join(lost) or 'nothing'}")
        self._lines.append(f"diverged: {' '.join(map(str, diverged)) or 'nowhere'}")

    def _do_outcome(self) -> None:
        """The end of a story of many generations: logs, and what is wrong with them."""
        self._do_logs()
        refused = [one for one in self.world.produced if one.answer and one.answer.error is not ErrorCode.NONE]
        found = {
            "lost": self._unless_offline(self.world.lost),
            "diverged": self.world.diverged(),
            "stuck": self._unless_offline(self.world.stuck),
            "exited": self.world.exited,
            "refused": [value for one in refused for value in one.values],
            "unanswered": [value for one in self.world.produced if one.answer is None for value in one.values],
        }
        if self.world.leader == NO_LEADER:
            self._lines.append("offline")
        self._lines += [f"{what}: {' '.join(map(str, which))}" for what, which in found.items() if which]

    def _unless_offline(self, look: Callable[[], Sequence[object]]) -> Sequence[object]:
        return look() if self.world.leader != NO_LEADER else []

    # -------------------------------------------------------------------------------------------------- printing

    def _tell(self, who: str, effect: Told) -> None:
        if isinstance(effect, tuple):
            (_, _, requested), error, end = effect
            line = f"answer lookup of epoch {requested}: {error.name} ({end.leader_epoch},{end.end_offset})"
        else:
            line = _print_replica_effect(effect) if who != "controller" else _print_decision(effect)
        if line:
            self._lines.append(f"{who}: {line}")


def _nodes(nodes: tuple[NodeId, ...]) -> str:
    return ",".join(map(str, nodes))


def _values(name: str) -> list[str]:
    stem, _, count = name.partition("*")
    return [f"{stem}{number}" for number in range(int(count))] if count else [name]


def _parse(nodes: str) -> tuple[NodeId, ...]:
    return tuple(NodeId(int(node)) for node in nodes.split(",") if node)


def _print_request(wanted: NextFetch | NextEpochLookup | None) -> str:
    match wanted:
        case None:
            return "nothing to fetch"
        case NextEpochLookup(_, _, requested_epoch):
            return f"look up epoch {requested_epoch}"
        case NextFetch(_, _, fetch_offset):
            return f"fetch {fetch_offset}"


def _print_replica_effect(effect: ReplicaEffect | ControllerEffect) -> str:  # noqa: C901, PLR0911
    match effect:
        case Append(payload, spans):
            batches = zip(spans, payload, strict=True)  # type: ignore[call-overload]
            return "append " + " ".join(
                f"[{s.base_offset},{s.end_offset})@{s.leader_epoch} {' '.join(v)}" for s, v in batches
            )
        case AnswerProduce(Produced() as produced, error, base_offset):
            return f"answer produce {' '.join(produced.values)}: {error.name} {base_offset}"
        case AnswerFetch(token, error, high_watermark, _, _, diverging):
            parts = f" diverging=({diverging.leader_epoch},{diverging.end_offset})" if diverging else ""
            return f"answer fetch of {token[0]}: {error.name} hw={high_watermark}{parts}"  # type: ignore[index]
        case Truncate(to_offset, reason):
            return f"truncate to {to_offset} ({reason})"
        case RaiseLogStart(to_offset, reason):
            return f"log starts at {to_offset} ({reason})"
        case StartLogAt(offset, reason):
            return f"empty the log, start at {offset} ({reason})"
        case AnswerDeleteRecords(_, error, low_watermark):
            return f"answer delete records: {error.name} {low_watermark}"
        case CheckpointEpochs(entries):
            return f"epochs {' '.join(f'{e.leader_epoch}:{e.start_offset}' for e in entries)}"
        case HighWatermarkAdvanced(high_watermark):
            return f"high watermark {high_watermark}"
        case ProposeIsr(isr, _, partition_epoch):
            return f"propose isr {_nodes(isr)} over version {partition_epoch}"
        case ReplicaFailed(errno, reason):
            return f"failed errno={errno} {reason}".rstrip()
        case _:
            return repr(effect)


def _print_state(state: PartitionState) -> str:
    elr = f" elr={_nodes(state.elr)}" if state.elr else ""
    known = f" last_known_elr={_nodes(state.last_known_elr)}" if state.last_known_elr else ""
    last = f" last_known_leader={state.last_known_leader}" if state.last_known_leader != NO_LEADER else ""
    return (
        f"{state.topic_partition} leader={state.leader} epoch={state.leader_epoch} "
        f"version={state.partition_epoch} isr={_nodes(state.isr)} replicas={_nodes(state.replicas)}{elr}{known}{last}"
    )


def _print_decision(effect: ReplicaEffect | ControllerEffect) -> str:
    match effect:
        case Elected(state, clean):
            return f"elected{'' if clean else ' uncleanly'} {_print_state(state)}"
        case IsrChanged(state):
            return f"isr {_print_state(state)}"
        case SessionChanged(broker, change):
            return f"broker {broker} {change}"
        case AnswerIsrChange(_, error) | AnswerElection(_, error) if error.name != "NONE":
            return f"refused: {error.name}"
        case _:
            return ""


class ControllerTeller:
    """Plays commands on a :class:`Controller` alone and prints every effect."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._knobs = GENERATIONS["3.7"]
        self._min_isr, self._unclean = 1, False
        self._controller = self._born(None)

    def _born(self, state: Mapping[str, Any] | None) -> Controller:
        return Controller(
            1_500,
            state,
            knobs=self._knobs,
            min_insync_replicas=self._min_isr,
            unclean_leader_election_enable=self._unclean,
        )

    def command(self, line: str) -> list[str]:
        name, *words = line.split()
        arguments, options = _options(words)
        event = getattr(self, f"_do_{name.replace('-', '_')}")(*arguments, **options)
        return [_print_controller_effect(effect) for effect in self._controller.handle(event)]

    @property
    def _now_ns(self) -> int:
        return self._now_ms * 1_000_000

    def _do_start(
        self, *, generation: str = "3.7", min_isr: str = "1", unclean: str = "false", **overrides: str
    ) -> ControllerEvent:
        """Also a restart, from what was persisted."""
        self._knobs = knobs_of(generation, overrides)
        self._min_isr, self._unclean = int(min_isr), unclean == "true"
        self._controller = self._born(self._controller.to_state())
        return ControllerStarted(self._now_ns)

    def _do_register(self, broker: str, incarnation: str, *, previous: str = "-1") -> ControllerEvent:
        """``previous`` is the broker epoch of its last clean shutdown."""
        node = NodeId(int(broker))
        return RegistrationRequested("token", node, incarnation, f"host{broker}", 9092, self._now_ns, int(previous))

    def _do_elect(self, partition: str, *, leader: str = "", unclean: str = "false") -> ControllerEvent:
        wanted = NodeId(int(leader)) if leader else None
        return ElectionRequested("token", _partition(partition), wanted, unclean == "true", self._now_ns)

    def _do_heartbeat(self, broker: str, epoch: str) -> ControllerEvent:
        return HeartbeatReceived("token", NodeId(int(broker)), int(epoch), self._now_ns)

    def _do_tick(self, ms: str) -> ControllerEvent:
        self._now_ms += int(ms)
        return Tick(self._now_ns)

    def _do_create(
        self, topic: str, *, partitions: str = "-1", factor: str = "-1", assign: str = ""
    ) -> ControllerEvent:
        rows = [tuple(NodeId(int(node)) for node in row.split(",") if node) for row in assign.split("/")]
        return TopicCreationRequested("token", topic, int(partitions), int(factor), tuple(rows) if assign else None)

    def _do_propose(
        self, broker: str, partition: str, isr: str, *, epoch: str, version: str, broker_epoch: str, members: str = ""
    ) -> ControllerEvent:
        """``members`` are the broker epochs of the ISR's members, as the leader knows them."""
        nodes = tuple(NodeId(int(node)) for node in isr.split(",") if node != "none")
        known = tuple(int(one) for one in members.split(",") if one)
        return IsrChangeRequested(
            "token",
            NodeId(int(broker)),
            int(broker_epoch),
            _partition(partition),
            int(epoch),
            int(version),
            nodes,
            known,
        )

    def _do_producer_ids(self, broker: str, epoch: str) -> ControllerEvent:
        return ProducerIdsRequested("token", NodeId(int(broker)), int(epoch))


def _partition(name: str) -> TopicPartition:
    topic, number = name.rsplit("-", 1)
    return TopicPartition(topic, int(number))


def _print_controller_effect(effect: ControllerEffect) -> str:  # noqa: C901, PLR0911
    match effect:
        case Persist(snapshot):
            return f"persist controller_epoch={snapshot['controller_epoch']}"
        case SendPartitionStates(broker, controller_epoch, partitions):
            states = "".join(f"\n    {_print_state(state)}" for state in partitions)
            return f"send states to {broker} as controller {controller_epoch}{states}"
        case SendMetadata(brokers, _, live, partitions):
            names = _nodes(tuple(endpoint.broker for endpoint in live))
            return f"send metadata to {_nodes(brokers)}: brokers {names}, {len(partitions)} partitions"
        case AnswerRegistration(_, error, broker_epoch):
            return f"answer registration: {error.name} broker_epoch={broker_epoch}"
        case AnswerHeartbeat(_, error):
            return f"answer heartbeat: {error.name}"
        case AnswerTopicCreation(_, error, message, partitions, factor):
            return f"answer creation: {error.name} partitions={partitions} factor={factor} {message}".rstrip()
        case AnswerIsrChange(_, error, state):
            return f"answer isr: {error.name} {_print_state(state) if state else ''}".rstrip()
        case AnswerElection(_, error, state):
            return f"answer election: {error.name} {_print_state(state) if state else ''}".rstrip()
        case AnswerProducerIds(_, error, first, count):
            return f"answer producer ids: {error.name} {first}+{count}"
        case Elected(state, clean, from_isr, previous, _, cause):
            return f"elected {_print_state(state)} clean={clean} from_isr={from_isr} previous={previous} ({cause})"
        case IsrChanged(state, previous_isr, _, cause):
            return f"isr {_print_state(state)} previous={_nodes(previous_isr)} ({cause})"
        case SessionChanged(broker, change, broker_epoch):
            return f"broker {broker} {change} broker_epoch={broker_epoch}"
