"""A tiny cluster in memory: one partition, replicas with logs that survive a kill, a controller, and a network
whose messages wait in a list until somebody delivers or drops them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, cast

from harness.error_codes import ErrorCode
from harness.model import NO_EPOCH, NO_LEADER, NodeId, Offset, TopicPartition
from harness.replication.controller import Controller
from harness.replication.controller_messages import (
    AnswerIsrChange,
    AnswerRegistration,
    ControllerEffect,
    ControllerEvent,
    ControllerStarted,
    ElectionRequested,
    HeartbeatReceived,
    IsrChangeRequested,
    PartitionState,
    RegistrationRequested,
    SendMetadata,
    SendPartitionStates,
    TopicCreationRequested,
)
from harness.replication.knobs import Knobs
from harness.replication.log_state import StoredLog
from harness.replication.messages import (
    AnswerFetch,
    AnswerProduce,
    Append,
    CheckpointEpochs,
    DeleteRecordsRequested,
    EpochEnd,
    EpochEndAnswered,
    FetchAnswered,
    FetchReceived,
    IsrAnswered,
    NextEpochLookup,
    NextFetch,
    PartitionStateChanged,
    ProduceRequested,
    ProducerStamp,
    ProposeIsr,
    RaiseLogStart,
    ReplicaEffect,
    ReplicaEvent,
    ReplicaFailed,
    RetentionReached,
    SessionsHeard,
    StartLogAt,
    Tick,
    Truncate,
)
from harness.replication.replica import Replica, ReplicaConfig
from tests.harness.replication.nodes import Batch, Broker, FetchToken, IsrToken, Message, Produced

PARTITION = TopicPartition("ledger", 0)
SESSION_MS = 1_500
STORAGE = (Append, Truncate, RaiseLogStart, StartLogAt)

Told: TypeAlias = ReplicaEffect | ControllerEffect | tuple[NextEpochLookup, ErrorCode, EpochEnd]
"""What a node did: an effect, or the answer to a lookup."""


class World:
    """See the module. Every effect performed is passed to ``tell`` as ``(who, effect)``."""

    def __init__(
        self,
        knobs: Knobs,
        nodes: int,
        min_isr: int,
        *,
        lag_ms: int = 2_000,
        unclean: bool = False,
        tell: Callable[[str, Told], None] = lambda _who, _effect: None,
    ) -> None:
        self.knobs = knobs
        self.min_isr = min_isr
        self.lag_ms = lag_ms
        self.unclean = unclean
        self.now_ns = 0
        self.in_flight: list[Message] = []
        self.produced: list[Produced] = []
        self.exited: list[NodeId] = []
        self.fetch_batches = 1_000
        self._tell = tell
        self.brokers = {NodeId(node): Broker(NodeId(node)) for node in range(nodes)}
        self.controller = Controller(
            SESSION_MS, knobs=knobs, min_insync_replicas=min_isr, unclean_leader_election_enable=unclean
        )
        self._controller_ns = 0
        self._metadata: SendMetadata | None = None
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
                RegistrationRequested(
                    node, node, f"{node}.{broker.incarnation}", "h", 1, self._controller_ns, broker.clean_epoch
                )
            )
            if broker.broker_epoch >= 0:
                return
            self.expire(node)

    def boot(self, node: NodeId) -> None:
        """A process on the log as it lies on disk, not registered yet."""
        broker = self.brokers[node]
        watermark = broker.checkpointed_watermark
        stored = StoredLog(broker.log_start, broker.log_end, broker.epochs, watermark, broker.spans)
        config = ReplicaConfig(self.min_isr, self.lag_ms, unclean_leader_election_enable=self.unclean)
        broker.replica = Replica(node, PARTITION, self.knobs, config, stored)
        broker.epochs = broker.replica.epoch_entries  # an entry beyond the end would come true later
        broker.incarnation += 1
        broker.fetching = False
        broker.broker_epoch = -1

    def bounce(self, node: NodeId) -> None:
        """Away and back without the controller noticing: it sends the state once more.

        It was fast and clean, or there was no controller meanwhile. What is to be on disk is checkpointed before.
        """
        epoch = self.brokers[node].broker_epoch
        self.kill(node)
        self.boot(node)
        self.brokers[node].broker_epoch = epoch
        self._push(node, self.controller.partitions)
        self.inform(node)

    def kill(self, node: NodeId) -> None:
        self.brokers[node].replica = None
        self.brokers[node].clean_epoch = -1

    def stop(self, node: NodeId, *, seen: bool = True) -> None:
        """A clean shutdown: everything is on disk, and if it was ``seen`` the controller hears of it."""
        self.checkpoint(node)
        epoch = self.brokers[node].broker_epoch
        self.kill(node)
        self.brokers[node].clean_epoch = epoch
        if seen:
            self.expire(node)

    def checkpoint(self, node: NodeId) -> None:
        self.brokers[node].checkpointed_watermark = self.replica(node).high_watermark

    # -------------------------------------------------------------------------------------------------- controller

    def expire(self, *nodes: NodeId) -> None:
        """The controller hears nothing of ``nodes`` for longer than a session, but of all others."""
        self._controller_ns += (SESSION_MS + 1) * 1_000_000
        for other in self.controller.live_brokers:
            if other not in nodes:
                self.heartbeat(other)
        self._command(Tick(self._controller_ns))

    def heartbeat(self, node: NodeId) -> None:
        epoch = next(record.epoch for record in self.controller.brokers if record.broker == node)
        self._command(HeartbeatReceived(node, node, epoch, self._controller_ns))

    def elect(self, leader: NodeId | None, *, unclean: bool = False) -> None:
        """An operator's election."""
        self._command(ElectionRequested("elect", PARTITION, leader, unclean, self._controller_ns))

    def _command(self, event: ControllerEvent) -> None:
        for effect in self.controller.handle(event):
            self._tell("controller", effect)
            match effect:
                case AnswerRegistration(token, ErrorCode.NONE, epoch):
                    self.brokers[NodeId(cast("int", token))].broker_epoch = epoch
                case SendPartitionStates(node, _, states):
                    self._push(node, states)
                case SendMetadata(nodes):
                    self._metadata = effect
                    for node in nodes:
                        self.inform(node)
                case AnswerIsrChange(token, error, state):
                    self._answer_isr(token, error, state)
                case _:
                    pass

    def _push(self, node: NodeId, states: Iterable[PartitionState], controller_epoch: int = NO_EPOCH) -> None:
        for state in states:

            def arrive(state: PartitionState = state) -> None:
                _, leader, leader_epoch, partition_epoch, isr, replicas = state[:6]
                changed = PartitionStateChanged(
                    leader, leader_epoch, isr, replicas, partition_epoch, self.now(node), controller_epoch
                )
                self.handle(node, changed)

            self._post("states", node, arrive)

    def inform(self, node: NodeId) -> None:
        """Tell ``node`` who has a session now: at once, or where leaders let nobody else in, by a message."""
        assert self._metadata is not None
        heard = SessionsHeard(self._metadata.sessions)
        self._post("metadata", node, lambda: self.handle(node, heard))
        if self.knobs.newcomers == "anybody":
            self.deliver(self.in_flight[-1])

    def impose(
        self,
        leader: NodeId,
        leader_epoch: int,
        isr: tuple[NodeId, ...],
        *,
        to: tuple[NodeId, ...] = (),
        controller_epoch: int = NO_EPOCH,
    ) -> None:
        """The word of another controller, which elects whom it likes, to everybody or to some."""
        state = PartitionState(PARTITION, leader, leader_epoch, 100 + leader_epoch, isr, tuple(self.brokers))
        for node in to or self.alive:
            self._push(node, [state], controller_epoch)

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
        """``node`` asks its leader what it wants to know next, unless that is nothing or an answer is under way."""
        broker = self.brokers[node]
        wanted = self.replica(node).next_request()
        if wanted is None or broker.fetching:
            return
        broker.fetching = True
        incarnation = broker.incarnation

        def finish() -> None:
            if broker.incarnation == incarnation:
                broker.fetching = False

        token = FetchToken(node, incarnation, wanted, finish, self.replica(node).log_start_offset)
        if isinstance(wanted, NextFetch):
            self._post("fetch-request", wanted.leader, lambda: self._fetch_arrives(token, wanted), finish)
        else:
            self._post("lookup-request", wanted.leader, lambda: self._lookup_arrives(token, wanted), finish)

    def spoof(self, leader: NodeId, follower: NodeId, offset: Offset) -> None:
        """A stranger fetches in the name of ``follower``."""
        wanted = NextFetch(leader, NO_EPOCH, offset, NO_EPOCH)
        token = FetchToken(follower, -1, wanted, lambda: None)
        self._post("fetch-request", leader, lambda: self._fetch_arrives(token, wanted))

    def _fetch_arrives(self, token: FetchToken, wanted: NextFetch) -> None:
        event = FetchReceived(
            token, token.node, wanted.fetch_offset, wanted.leader_epoch, wanted.last_fetched_epoch,
            self.now(wanted.leader), self.brokers[token.node].broker_epoch, wanted.high_watermark, token.log_start,
        )  # fmt: skip
        self.handle(wanted.leader, event)

    def _lookup_arrives(self, token: FetchToken, wanted: NextEpochLookup) -> None:
        error, end = self.replica(wanted.leader).judge_lookup(wanted.leader_epoch, wanted.requested_epoch)
        self._tell(str(wanted.leader), (wanted, error, end))

        def arrive() -> None:
            token.finish()
            self.handle(token.node, EpochEndAnswered(*wanted, error, end, self.now(token.node)))

        self.in_flight.append(Message("lookup-response", token.node, token.incarnation, arrive, token.finish))

    def _answer_fetch(self, leader: NodeId, answer: AnswerFetch) -> None:
        assert isinstance(answer.token, FetchToken)
        node, incarnation, wanted, finish, _ = answer.token
        assert isinstance(wanted, NextFetch)
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
                    proposal.broker_epochs,
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

    def delete_records(self, node: NodeId, before: Offset) -> None:
        """A client's request to ``node``; -1: up to the watermark."""
        self.handle(node, DeleteRecordsRequested("client", before, self.now(node)))

    def retain(self, node: NodeId, start: Offset) -> None:
        """The log of ``node`` is so old or so large that only what lies from ``start`` on may stay."""
        self.handle(node, RetentionReached(start, self.now(node)))

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
        assert not any(isinstance(effect, STORAGE) for effect in effects[:-1]), "storage is asked last"
        for effect in effects:
            self._tell(str(node), effect)
            self._perform(node, effect)

    def _perform(self, node: NodeId, effect: ReplicaEffect) -> None:
        broker = self.brokers[node]
        match effect:
            case Append() | Truncate() | RaiseLogStart() | StartLogAt():
                self.handle(node, broker.store(effect, self.now(node)))
            case CheckpointEpochs(entries):
                broker.epochs = entries
            case AnswerProduce(Produced() as produced):
                produced.answer = effect
            case AnswerFetch():
                self._answer_fetch(node, effect)
            case ProposeIsr():
                self._propose(node, effect)
            case ReplicaFailed(errno):
                self.kill(node)
                if not errno:
                    self.exited.append(node)
            case _:
                pass

    # ------------------------------------------------------------------------------------------------- what is true

    @property
    def leader(self) -> NodeId:
        """The leader as the controller has it."""
        return self.controller.partitions[0].leader if self.controller.partitions else NO_LEADER

    def lost(self) -> list[str]:
        """Values acknowledged to acks=all that the leader's log does not hold where it said, though not deleted."""
        held = {(record.offset, record.value) for record in self.brokers[self.leader].records}
        return [
            value
            for produced in self.produced
            if produced.acknowledged and produced.acks == -1 and produced.answer
            for position, value in enumerate(produced.values)
            if (produced.answer.base_offset + position, value) not in held
            and produced.answer.base_offset + position >= self.brokers[self.leader].log_start
        ]

    def diverged(self) -> list[Offset]:
        """Offsets below both watermarks where two living replicas hold different records."""
        found = set()
        for one in self.alive:
            for other in self.alive:
                bound = min(self.replica(one).high_watermark, self.replica(other).high_watermark)
                theirs = {record.offset: record for record in self.brokers[other].records}
                mine = [record for record in self.brokers[one].records if record.offset < bound]
                found |= {record.offset for record in mine if theirs.get(record.offset, record) != record}
        return sorted(found)

    def stuck(self) -> list[NodeId]:
        """Living followers of the controller's leader that have not got to its end although everybody has fetched."""
        end = self.brokers[self.leader].log_end
        return [node for node in self.alive if node != self.leader and self.brokers[node].log_end != end]

    def heal(self, rounds: int = 100) -> bool:
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
