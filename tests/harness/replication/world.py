"""A tiny cluster in memory: one partition, replicas with logs that survive a kill, a controller, and a network
whose messages wait in a list until somebody delivers or drops them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from harness.model import NO_LEADER, NodeId, Offset, TopicPartition
from harness.replication.controller import Controller
from harness.replication.controller_messages import (
    AnswerIsrChange,
    AnswerRegistration,
    ControllerEffect,
    ControllerEvent,
    ControllerStarted,
    HeartbeatReceived,
    IsrChangeRequested,
    PartitionState,
    RegistrationRequested,
    SendPartitionStates,
    TopicCreationRequested,
)
from harness.replication.knobs import Knobs
from harness.replication.messages import (
    AnswerFetch,
    AnswerProduce,
    Append,
    Appended,
    AppendFailed,
    BatchSpan,
    CheckpointEpochs,
    EpochEntry,
    ErrorCode,
    FetchAnswered,
    FetchReceived,
    IsrAnswered,
    NextFetch,
    PartitionStateChanged,
    ProduceRequested,
    ProducerStamp,
    ProposeIsr,
    ReplicaEffect,
    ReplicaEvent,
    ReplicaFailed,
    Tick,
    Truncate,
    Truncated,
)
from harness.replication.replica import Replica

PARTITION = TopicPartition("ledger", 0)
SESSION_MS = 1_500
ENOSPC = 28


class Batch(NamedTuple):
    span: BatchSpan
    values: tuple[str, ...]


class Record(NamedTuple):
    """One record as it lies in a log."""

    offset: Offset
    value: str
    leader_epoch: int


@dataclass
class Broker:
    """What survives a kill, and the process if it lives."""

    node: NodeId
    replica: Replica | None = None
    log: list[Batch] = field(default_factory=list)
    epochs: tuple[EpochEntry, ...] = ()
    checkpointed_watermark: Offset = 0
    incarnation: int = 0
    broker_epoch: int = -1
    fetching: bool = False
    disk_full: bool = False
    clock_ns: int = 0

    @property
    def records(self) -> list[Record]:
        return [
            Record(batch.span.base_offset + position, value, batch.span.leader_epoch)
            for batch in self.log
            for position, value in enumerate(batch.values)
        ]


@dataclass(eq=False)
class Message:
    """Something on its way to ``destination``; a connection's messages die with either process."""

    kind: str
    destination: NodeId
    incarnation: int
    arrive: Callable[[], None]
    lost: Callable[[], None] = lambda: None


@dataclass(eq=False)
class Produced:
    """A client's produce request: its values, and what came of it."""

    values: tuple[str, ...]
    acks: int
    answer: AnswerProduce | None = None

    @property
    def acknowledged(self) -> bool:
        return self.answer is not None and self.answer.error is ErrorCode.NONE


class FetchToken(NamedTuple):
    """Whose fetch it is, and what frees that replica to send the next one."""

    node: NodeId
    incarnation: int
    wanted: NextFetch
    finish: Callable[[], None]


class IsrToken(NamedTuple):
    """Whose proposal it is, and what happens when its answer is lost."""

    node: NodeId
    incarnation: int
    lost: Callable[[], None]


class World:
    """See the module. Every effect performed is passed to ``tell`` as ``(who, effect)``."""

    def __init__(
        self,
        knobs: Knobs,
        nodes: int,
        min_isr: int,
        *,
        lag_ms: int = 2_000,
        replica: type[Replica] = Replica,
        tell: Callable[[str, ReplicaEffect | ControllerEffect], None] = lambda _who, _effect: None,
    ) -> None:
        self.knobs = knobs
        self.min_isr = min_isr
        self.lag_ms = lag_ms
        self.now_ns = 0
        self.in_flight: list[Message] = []
        self.produced: list[Produced] = []
        self.fetch_batches = 1_000
        self._replica = replica
        self._tell = tell
        self.brokers = {NodeId(node): Broker(NodeId(node)) for node in range(nodes)}
        self.controller = Controller(SESSION_MS)
        self._controller_ns = 0
        self._command(ControllerStarted(0))
        for node in self.brokers:
            self.start(node)
        self._command(TopicCreationRequested("create", PARTITION.topic, 1, nodes, None))

    # ------------------------------------------------------------------------------------------------- processes

    def replica(self, node: NodeId) -> Replica:
        replica = self.brokers[node].replica
        assert replica is not None, f"broker {node} is dead"
        return replica

    @property
    def alive(self) -> list[NodeId]:
        return [node for node, broker in self.brokers.items() if broker.replica is not None]

    def start(self, node: NodeId) -> None:
        """Start the process and register it; an old session is waited out."""
        self.boot(node)
        broker = self.brokers[node]
        for _ in range(2):
            self._command(
                RegistrationRequested(node, node, f"{node}.{broker.incarnation}", "h", 1, self._controller_ns)
            )
            if broker.broker_epoch >= 0:
                return
            self.expire(node)

    def boot(self, node: NodeId) -> None:
        """A process on the log as it lies on disk, not registered yet."""
        broker = self.brokers[node]
        broker.replica = self._replica(
            node,
            PARTITION,
            self.knobs,
            min_insync_replicas=self.min_isr,
            replica_lag_time_max_ms=self.lag_ms,
            log_start_offset=0,
            log_end_offset=broker.log[-1].span.end_offset if broker.log else 0,
            epoch_entries=broker.epochs,
            high_watermark=broker.checkpointed_watermark,
            producer_batches=[batch.span for batch in broker.log],
        )
        broker.incarnation += 1
        broker.fetching = False
        broker.broker_epoch = -1

    def bounce(self, node: NodeId) -> None:
        """Kill and start so fast that the controller does not notice: it sends the state once more."""
        epoch = self.brokers[node].broker_epoch
        self.kill(node)
        self.boot(node)
        self.brokers[node].broker_epoch = epoch
        self._push(node, self.controller.partitions)

    def kill(self, node: NodeId) -> None:
        self.brokers[node].replica = None

    def checkpoint(self, node: NodeId) -> None:
        self.brokers[node].checkpointed_watermark = self.replica(node).high_watermark

    # -------------------------------------------------------------------------------------------------- controller

    def expire(self, node: NodeId) -> None:
        """The controller hears nothing of ``node`` for longer than a session, but of all others."""
        self._controller_ns += (SESSION_MS + 1) * 1_000_000
        for other in self.controller.live_brokers:
            if other != node:
                self.heartbeat(other)
        self._command(Tick(self._controller_ns))

    def heartbeat(self, node: NodeId) -> None:
        epoch = next(record.epoch for record in self.controller.brokers if record.broker == node)
        self._command(HeartbeatReceived(node, node, epoch, self._controller_ns))

    def _command(self, event: ControllerEvent) -> None:
        for effect in self.controller.handle(event):
            self._tell("controller", effect)
            match effect:
                case AnswerRegistration(token, ErrorCode.NONE, epoch):
                    self.brokers[NodeId(cast("int", token))].broker_epoch = epoch
                case SendPartitionStates(node, _, states):
                    self._push(node, states)
                case AnswerIsrChange(token, error, state):
                    self._answer_isr(token, error, state)
                case _:
                    pass

    def _push(self, node: NodeId, states: Iterable[PartitionState]) -> None:
        for state in states:

            def arrive(state: PartitionState = state) -> None:
                _, leader, leader_epoch, partition_epoch, isr, replicas = state[:6]
                changed = PartitionStateChanged(leader, leader_epoch, isr, replicas, partition_epoch, self.now(node))
                self.handle(node, changed)

            self._post("states", node, arrive)

    def impose(self, leader: NodeId, leader_epoch: int, isr: tuple[NodeId, ...]) -> None:
        """The word of another controller, which elects whom it likes."""
        state = PartitionState(PARTITION, leader, leader_epoch, 100 + leader_epoch, isr, tuple(self.brokers))
        for node in self.alive:
            self._push(node, [state])

    # ---------------------------------------------------------------------------------------------------- messages

    def _post(
        self, kind: str, node: NodeId, arrive: Callable[[], None], lost: Callable[[], None] = lambda: None
    ) -> None:
        self.in_flight.append(Message(kind, node, self.brokers[node].incarnation, arrive, lost))

    def deliver(self, message: Message) -> None:
        """Let it arrive, if the process it was meant for still lives."""
        self.in_flight.remove(message)
        broker = self.brokers[message.destination]
        if broker.replica is None or broker.incarnation != message.incarnation:
            message.lost()
        else:
            message.arrive()

    def drop(self, message: Message) -> None:
        self.in_flight.remove(message)
        message.lost()

    def settle(self, held: Callable[[Message], bool] = lambda _: False) -> None:
        """Deliver everything that is not held, in order of sending, and what comes of it."""
        while ready := next((message for message in self.in_flight if not held(message)), None):
            self.deliver(ready)

    # ------------------------------------------------------------------------------------------------------- fetch

    def fetch(self, node: NodeId) -> None:
        """``node`` sends its next fetch, unless it has none or one is under way."""
        broker = self.brokers[node]
        wanted = self.replica(node).next_fetch()
        if wanted is None or broker.fetching:
            return
        broker.fetching = True
        incarnation = broker.incarnation

        def finish() -> None:
            if broker.incarnation == incarnation:
                broker.fetching = False

        def arrive() -> None:
            token = FetchToken(node, incarnation, wanted, finish)
            event = FetchReceived(
                token,
                node,
                wanted.fetch_offset,
                wanted.leader_epoch,
                wanted.last_fetched_epoch,
                self.now(wanted.leader),
            )
            self.handle(wanted.leader, event)

        self._post("fetch-request", wanted.leader, arrive, finish)

    def _answer_fetch(self, leader: NodeId, answer: AnswerFetch) -> None:
        assert isinstance(answer.token, FetchToken)
        node, incarnation, wanted, finish = answer.token
        good = answer.error is ErrorCode.NONE and answer.diverging is None
        batches = self._read(leader, wanted) if good else ()

        def arrive() -> None:
            finish()
            event = FetchAnswered(
                wanted.leader,
                wanted.leader_epoch,
                wanted.fetch_offset,
                answer.error,
                answer.high_watermark,
                answer.log_start_offset,
                answer.log_end_offset,
                answer.diverging,
                tuple(batch.span for batch in batches),
                tuple(batch.values for batch in batches),
                self.now(node),
            )
            self.handle(node, event)

        self.in_flight.append(Message("fetch-response", node, incarnation, arrive, finish))

    def _read(self, leader: NodeId, wanted: NextFetch) -> tuple[Batch, ...]:
        found = [batch for batch in self.brokers[leader].log if batch.span.end_offset > wanted.fetch_offset]
        return tuple(found[: self.fetch_batches])

    # --------------------------------------------------------------------------------------------------------- ISR

    def _propose(self, node: NodeId, proposal: ProposeIsr) -> None:
        broker = self.brokers[node]
        incarnation, epoch = broker.incarnation, broker.broker_epoch

        def lost() -> None:
            if broker.replica is not None and broker.incarnation == incarnation:
                self.handle(node, IsrAnswered(ErrorCode.REQUEST_TIMED_OUT, (), -1, -1))

        def arrive() -> None:
            self._command(
                IsrChangeRequested(
                    IsrToken(node, incarnation, lost),
                    node,
                    epoch,
                    PARTITION,
                    proposal.leader_epoch,
                    proposal.partition_epoch,
                    proposal.isr,
                )
            )

        self._post("isr-request", node, arrive, lost)

    def _answer_isr(self, token: object, error: ErrorCode, state: PartitionState | None) -> None:
        assert isinstance(token, IsrToken)
        node, incarnation, lost = token
        isr, leader_epoch, partition_epoch = (
            (state.isr, state.leader_epoch, state.partition_epoch) if state else ((), -1, -1)
        )

        def arrive() -> None:
            self.handle(node, IsrAnswered(error, isr, leader_epoch, partition_epoch))

        self.in_flight.append(Message("isr-response", node, incarnation, arrive, lost))

    # ---------------------------------------------------------------------------------------------------- replicas

    def produce(self, node: NodeId, *values: str, acks: int = -1, producer: ProducerStamp | None = None) -> Produced:
        """One batch of ``values`` sent to ``node``."""
        produced = Produced(values, acks)
        self.produced.append(produced)
        self.handle(node, ProduceRequested(produced, acks, (len(values),), (values,), self.now(node), producer))
        return produced

    def now(self, node: NodeId) -> int:
        """What the clock of ``node`` says."""
        return self.now_ns + self.brokers[node].clock_ns

    def step_clock(self, node: NodeId, ms: int) -> None:
        """The clock of ``node`` is off by ``ms`` from now on."""
        self.brokers[node].clock_ns = ms * 1_000_000

    def tick(self, ms: int) -> None:
        self.now_ns += ms * 1_000_000
        for node in self.alive:
            self.handle(node, Tick(self.now(node)))

    def handle(self, node: NodeId, event: ReplicaEvent) -> None:
        """Give ``event`` to a replica and do what it wants done, storage's answers included."""
        replica = self.brokers[node].replica
        if replica is None:
            return
        effects = replica.handle(event)
        assert not any(isinstance(effect, Append | Truncate) for effect in effects[:-1]), "storage is asked last"
        for effect in effects:
            self._tell(str(node), effect)
            self._perform(node, effect)

    def _perform(self, node: NodeId, effect: ReplicaEffect) -> None:
        broker = self.brokers[node]
        match effect:
            case Append(payload, spans):
                self._append(broker, spans, payload)  # type: ignore[arg-type]
            case Truncate(to_offset, _):
                broker.log = [batch for batch in broker.log if batch.span.end_offset <= to_offset]
                end = broker.log[-1].span.end_offset if broker.log else 0
                self.handle(node, Truncated(end, tuple(batch.span for batch in broker.log)))
            case CheckpointEpochs(entries):
                broker.epochs = entries
            case AnswerProduce(Produced() as produced):
                produced.answer = effect
            case AnswerFetch():
                self._answer_fetch(node, effect)
            case ProposeIsr():
                self._propose(node, effect)
            case ReplicaFailed():
                self.kill(node)
            case _:
                pass

    def _append(self, broker: Broker, spans: tuple[BatchSpan, ...], payload: tuple[tuple[str, ...], ...]) -> None:
        if broker.disk_full:
            self.handle(broker.node, AppendFailed(ENOSPC))
            return
        broker.log += [Batch(span, values) for span, values in zip(spans, payload, strict=True)]
        self.handle(broker.node, Appended(self.now(broker.node)))

    # ------------------------------------------------------------------------------------------------- what is true

    @property
    def leader(self) -> NodeId:
        """The leader as the controller has it."""
        return self.controller.partitions[0].leader if self.controller.partitions else NO_LEADER

    def lost(self) -> list[str]:
        """Values acknowledged to acks=all that the leader's log does not hold where it said."""
        held = {(record.offset, record.value) for record in self.brokers[self.leader].records}
        return [
            value
            for produced in self.produced
            if produced.acknowledged and produced.acks == -1 and produced.answer
            for position, value in enumerate(produced.values)
            if (produced.answer.base_offset + position, value) not in held
        ]

    def diverged(self) -> list[Offset]:
        """Offsets below both watermarks where two living replicas hold different records."""
        found = set()
        for one in self.alive:
            for other in self.alive:
                bound = min(self.replica(one).high_watermark, self.replica(other).high_watermark)
                pairs = zip(self.brokers[one].records, self.brokers[other].records, strict=False)
                found |= {mine.offset for mine, theirs in pairs if mine != theirs and mine.offset < bound}
        return sorted(found)

    def heal(self, rounds: int = 40) -> bool:
        """End every fault and let the cluster work; whether it came to rest with everyone in sync."""
        while self.in_flight:
            self.drop(self.in_flight[0])
        for node, broker in self.brokers.items():
            if broker.replica is None:
                self.start(node)
            self.step_clock(node, 0)
            self.expire(node)
            self.heartbeat(node)
        return any(self._round() for _ in range(rounds))

    def _round(self) -> bool:
        for node in self.alive:
            self.fetch(node)
        self.settle()
        self.tick(100)
        self.settle()
        return self._at_rest()

    def _at_rest(self) -> bool:
        replicas = [self.replica(node) for node in self.alive]
        ends = {(replica.log_end_offset, replica.high_watermark) for replica in replicas}
        in_sync = all(len(replica.isr) == len(self.brokers) for replica in replicas)
        return len(replicas) == len(self.brokers) and len(ends) == 1 and in_sync and self.leader != NO_LEADER
