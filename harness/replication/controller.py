"""The controller: broker sessions, leader elections and ISRs. ``handle(event) -> effects``, without any I/O.

It pushes ``LeaderAndIsr``, as Kafka's with ZooKeeper, with KRaft's sessions, broker epochs and ``AlterPartition``. How
it elects leaders and treats a broker that bounces is up to the knobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, assert_never

from harness.error_codes import NO_ERROR, ErrorCode
from harness.model import NO_LEADER, NodeId
from harness.replication import topic_administration
from harness.replication.cluster_state import BrokerRecord, ClusterState
from harness.replication.controller_messages import (
    AnswerElection,
    AnswerHeartbeat,
    AnswerIsrChange,
    AnswerPlacement,
    AnswerProducerIds,
    AnswerRegistration,
    AnswerTopicChange,
    AnswerTopicCreation,
    BrokerEndpoint,
    ConfigsRequested,
    ControllerEffect,
    ControllerEvent,
    ControllerStarted,
    Elected,
    ElectionRequested,
    HeartbeatReceived,
    IsrChanged,
    IsrChangeRequested,
    PartitionsRequested,
    PartitionState,
    Persist,
    ProducerIdsRequested,
    RegistrationRequested,
    ReplicaPlaced,
    ReplicasAnswered,
    ReplicasDeleted,
    SendDeletions,
    SendMetadata,
    SendPartitionStates,
    SessionChanged,
    TopicCreationRequested,
    TopicDeletionRequested,
    TopicState,
)
from harness.replication.elections import Rules, TopicRules, choose, settle, with_isr, without_eligible
from harness.replication.isr_proposals import IsrProposals
from harness.replication.knobs import CURRENT_GENERATION, GENERATIONS, Knobs
from harness.replication.messages import Tick
from harness.replication.offline_replicas import OfflineReplicas
from harness.replication.topic_configs import Refusal

PRODUCER_ID_BLOCK = 1_000
"""The size of a block of producer ids, as in Kafka."""


class Controller:
    """The one controller of a cluster.

    Args:
        session_timeout_ms: ``broker.session.timeout.ms``.
        state: as persisted by an earlier controller (:meth:`to_state`); None: a new cluster.
        knobs: the protocol generation.
        min_insync_replicas: ``min.insync.replicas``.
        unclean_leader_election_enable: ``unclean.leader.election.enable``.
    """

    def __init__(
        self,
        session_timeout_ms: int,
        state: Mapping[str, Any] | None = None,
        *,
        knobs: Knobs = GENERATIONS[CURRENT_GENERATION],
        min_insync_replicas: int = 1,
        unclean_leader_election_enable: bool = False,
    ) -> None:
        self._knobs = knobs
        self._rules = TopicRules(knobs, min_insync_replicas, unclean=unclean_leader_election_enable)
        self._timeout_ns = session_timeout_ms * 1_000_000
        self._state = ClusterState() if state is None else ClusterState.from_json(state)
        self._heard_ns: dict[NodeId, int] = dict.fromkeys(self.live_brokers, 0)
        self._unheard: set[NodeId] = set()
        self._offline = OfflineReplicas()
        self._proposals = IsrProposals(self._state, self._offline, knobs)
        self._written = self.to_state()

    # ------------------------------------------------------------------------------------------- what it looks like

    @property
    def controller_epoch(self) -> int:
        """0 before :class:`ControllerStarted` in a new cluster."""
        return self._state.controller_epoch

    @property
    def brokers(self) -> tuple[BrokerRecord, ...]:
        """Every broker that ever registered, by id."""
        return tuple(self._state.brokers.values())

    @property
    def live_brokers(self) -> tuple[NodeId, ...]:
        """The brokers with a session, ascending."""
        return self._state.live_brokers

    @property
    def partitions(self) -> tuple[PartitionState, ...]:
        """Every partition, by name and number."""
        return tuple(self._state.partitions.values())

    @property
    def topics(self) -> tuple[TopicState, ...]:
        """Every topic, by name."""
        return tuple(self._state.topics.values())

    def to_state(self) -> dict[str, Any]:
        """The durable state as plain JSON data."""
        return self._state.to_json()

    # ---------------------------------------------------------------------------------------------------- handling

    def handle(self, event: ControllerEvent) -> list[ControllerEffect]:
        """Take in one event; the effects must be performed in order."""
        effects = self._dispatch(event)
        if effects and isinstance(effects[0], Persist) and not self._knobs.bugs:
            may_be_empty = self._rules.may_leave_nobody_in_sync
            self._state.check_invariants(self._heard_ns, self._knobs, may_be_empty=may_be_empty)
        return effects

    def _dispatch(self, event: ControllerEvent) -> list[ControllerEffect]:  # noqa: C901, PLR0911, PLR0912 (one per event)
        match event:
            case ControllerStarted(now_ns):
                return self._start(now_ns)
            case RegistrationRequested():
                return self._register(event)
            case HeartbeatReceived():
                return self._heartbeat(event)
            case TopicCreationRequested():
                return self._create_topic(event)
            case TopicDeletionRequested():
                return self._delete_topic(event)
            case PartitionsRequested():
                return self._add_partitions(event)
            case ConfigsRequested():
                return self._configure_topic(event)
            case ReplicasDeleted():
                return self._hear_of_deletions(event)
            case IsrChangeRequested():
                return self._change_isr(event)
            case ElectionRequested():
                return self._elect(event)
            case ProducerIdsRequested():
                return self._allocate_producer_ids(event)
            case ReplicasAnswered():
                return self._hear_of_replicas(event)
            case ReplicaPlaced():
                return self._hear_of_directory(event)
            case Tick(now_ns):
                return self._expire_sessions(now_ns)
            case _:
                assert_never(event)

    # ---------------------------------------------------------------------------------------------------- sessions

    def _start(self, now_ns: int) -> list[ControllerEffect]:
        first = self._state.controller_epoch == 0
        self._state.controller_epoch += first or "controller_epoch_not_raised" not in self._knobs.bugs
        if "eligible_forgotten_at_start" in self._knobs.bugs:
            self._state.create(one._replace(elr=(), last_known_elr=()) for one in self.partitions)
        self._heard_ns = dict.fromkeys(self.live_brokers, now_ns)
        self._unheard = set(self.live_brokers)
        # What an earlier controller persisted it may not have lived to record.
        recovered = [IsrChanged(one, one.isr, self.controller_epoch, "recovered") for one in self.partitions]
        deletions = self._send_deletions(self.live_brokers)
        return [self._persist(), *recovered, *deletions, *self._send(self.partitions)]

    def _register(self, request: RegistrationRequested) -> list[ControllerEffect]:
        if request.broker < 0:
            return [AnswerRegistration(request.token, ErrorCode.INVALID_REQUEST, -1)]
        known = self._state.brokers.get(request.broker)
        if known is None or not known.live:
            return self._admit(request, known, [])
        if known.incarnation_id == request.incarnation_id:
            self._hear(request.broker, request.now_ns)
            return [AnswerRegistration(request.token, NO_ERROR, known.epoch)]
        if not self._may_bounce(request, known):
            return [AnswerRegistration(request.token, ErrorCode.DUPLICATE_BROKER_REGISTRATION, -1)]
        return self._bounce(request, known)

    def _may_bounce(self, request: RegistrationRequested, known: BrokerRecord) -> bool:
        """Whether a new process of a broker may register although its session has not ended.

        A clean shutdown closes the session, which the controller may miss, as it does while it is down.
        """
        if self._knobs.broker_bounce != "unnoticed":
            return self._knobs.broker_bounce == "noticed"
        return request.previous_broker_epoch == known.epoch or request.broker in self._unheard

    def _bounce(self, request: RegistrationRequested, known: BrokerRecord) -> list[ControllerEffect]:
        """A new process although the session of the old one has not ended."""
        if self._knobs.broker_bounce == "unnoticed":
            return self._take_over(request, known)
        known.live = False
        _, records = self._settle(f"broker {request.broker} bounced")
        return self._admit(request, known, records)

    def _take_over(self, request: RegistrationRequested, known: BrokerRecord) -> list[ControllerEffect]:
        """A new process continues the session of an old one; only the timeline records it."""
        known.incarnation_id, known.host, known.port = request.incarnation_id, request.host, request.port
        self._hear(known.broker, request.now_ns)
        self._offline.restarted(known.broker)
        answer = AnswerRegistration(request.token, NO_ERROR, known.epoch)
        return self._welcome(known.broker, "bounced", answer)

    def _admit(
        self, request: RegistrationRequested, known: BrokerRecord | None, records: list[ControllerEffect]
    ) -> list[ControllerEffect]:
        """A new session; after an unclean shutdown the broker leaves ISR and ELR (KIP-966)."""
        if known is not None and self._is_unclean(request, known):
            cause = f"broker {request.broker} shut down uncleanly"
            records = [*records, *self._settle(cause, distrusted=request.broker)[1]]
        if known is not None and known.incarnation_id != request.incarnation_id:
            self._offline.restarted(request.broker)
        epoch = self._state.next_broker_epoch
        self._state.next_broker_epoch += 1
        self._state.register(
            BrokerRecord(request.broker, request.incarnation_id, epoch, request.host, request.port, live=True)
        )
        self._hear(request.broker, request.now_ns)
        answer = AnswerRegistration(request.token, NO_ERROR, epoch)
        return self._welcome(request.broker, "registered", answer, records)

    def _is_unclean(self, request: RegistrationRequested, known: BrokerRecord) -> bool:
        same_process = known.incarnation_id == request.incarnation_id
        if "unclean_shutdown_unnoticed" in self._knobs.bugs:
            return False
        return self._knobs.elections == "elr" and not same_process and request.previous_broker_epoch != known.epoch

    def _hear(self, broker: NodeId, now_ns: int) -> None:
        self._heard_ns[broker] = now_ns
        self._unheard.discard(broker)

    def _heartbeat(self, heartbeat: HeartbeatReceived) -> list[ControllerEffect]:
        error = self._state.broker_error(heartbeat.broker, heartbeat.broker_epoch)
        answer = AnswerHeartbeat(heartbeat.token, error)
        if error is not NO_ERROR:
            return [answer]
        self._hear(heartbeat.broker, heartbeat.now_ns)
        lost_log_dirs = self._offline.heard(heartbeat.broker, heartbeat.offline_log_dirs)
        if self._state.brokers[heartbeat.broker].live:
            return [answer, *self._ask_for_replicas(heartbeat.broker)] if lost_log_dirs else [answer]
        self._state.brokers[heartbeat.broker].live = True
        return self._welcome(heartbeat.broker, "returned", answer)

    def _ask_for_replicas(self, broker: NodeId) -> list[ControllerEffect]:
        """Make a broker that has lost a log directory answer for each of its replicas."""
        return self._send_states(broker, tuple(one for one in self.partitions if broker in one.replicas))

    def _hear_of_replicas(self, answer: ReplicasAnswered) -> list[ControllerEffect]:
        """A broker has answered which of its replicas lie in log directories that have failed."""
        if self._state.broker_error(answer.broker, answer.broker_epoch) is not NO_ERROR:
            return []
        if not self._offline.answered(answer.broker, answer.offline, answer.online):
            return []
        changed, records = self._settle(f"log directory of broker {answer.broker}")
        return [*([self._persist()] if changed else []), *records, *self._send(changed)]

    def _hear_of_directory(self, placed: ReplicaPlaced) -> list[ControllerEffect]:
        """A broker has reported the log directory of a replica, which is not stored: see the knob."""
        before = self._state.partitions.get(placed.topic_partition)
        error = self._state.broker_error(placed.broker, placed.broker_epoch)
        if before is None or error is not NO_ERROR:
            return [AnswerPlacement(placed.token, error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
        after = without_eligible(before) if self._knobs.placing_forgets_eligible else before
        if after is before:
            return [AnswerPlacement(placed.token, NO_ERROR)]
        self._state.partitions[after.topic_partition] = after
        cause = f"broker {placed.broker} has another log directory"
        return [
            self._persist(),
            self._record(before, after, cause),
            AnswerPlacement(placed.token, NO_ERROR),
            *self._send([after]),
        ]

    def _welcome(
        self,
        broker: NodeId,
        change: Literal["registered", "returned", "bounced"],
        answer: AnswerRegistration | AnswerHeartbeat,
        before: Iterable[ControllerEffect] = (),
    ) -> list[ControllerEffect]:
        """A session begins: partitions without a leader may get one, and the broker gets the whole state.

        ``before`` are the records of earlier changes.
        """
        session = SessionChanged(broker, change, self._state.brokers[broker].epoch, self.controller_epoch)
        changed, records = self._settle(f"broker {broker} {change}")
        changed_before = {one.partition.topic_partition for one in before if isinstance(one, Elected | IsrChanged)}
        changed_before |= {partition.topic_partition for partition in changed}
        news = [self._state.partitions[name] for name in sorted(changed_before)]
        return [self._persist(), session, *before, *records, answer, *self._send(news, newcomer=broker)]

    def _expire_sessions(self, now_ns: int) -> list[ControllerEffect]:
        expired = sorted(node for node, heard_ns in self._heard_ns.items() if now_ns - heard_ns > self._timeout_ns)
        if not expired:
            return []
        sessions = [
            SessionChanged(node, "expired", self._state.brokers[node].epoch, self.controller_epoch) for node in expired
        ]
        cause = f"session of {', '.join(f'broker {node}' for node in expired)} expired"
        steps = self._end_sessions(expired)
        ignored = "ended_session_ignored" in self._knobs.bugs
        changed, records = ([], []) if ignored else self._settle(cause, steps=steps)
        return [self._persist(), *sessions, *records, *self._send(changed)]

    def _end_sessions(self, expired: list[NodeId]) -> list[tuple[NodeId, ...]]:
        """The live brokers after each step: ZooKeeper's controllers expire all at once, KRaft's the stalest first."""
        steps = []
        for node in sorted(expired, key=lambda node: (self._heard_ns[node], node)):
            self._state.brokers[node].live = False
            del self._heard_ns[node]
            steps.append(self.live_brokers)
        return steps if self._knobs.broker_bounce == "refused" else steps[-1:]

    # --------------------------------------------------------------------------------------------------- elections

    def _settle(
        self, cause: str, *, distrusted: NodeId | None = None, steps: Iterable[tuple[NodeId, ...]] = ()
    ) -> tuple[list[PartitionState], list[ControllerEffect]]:
        """Elect leaders and shrink ISRs for the present live brokers; the changed states and their records.

        ``steps``: the live brokers after each step, if sessions ended one by one. Each step that changes something is
        recorded, for even a leader that was deposed at once may have been elected uncleanly.
        """
        lives = tuple(steps) or (self.live_brokers,)
        changed: list[PartitionState] = []
        records: list[ControllerEffect] = []
        for first in self.partitions:
            name, before = first.topic_partition, first
            for live in lives:
                after = settle(before, self._offline.live(name, live), self._rules_of(first), distrusted)
                if "leader_epoch_not_raised" in self._knobs.bugs:
                    after = after._replace(leader_epoch=before.leader_epoch) if after is not before else before
                if after is not before:
                    records.append(self._record(before, after, cause))
                before = after
            if before is not first:
                self._state.partitions[name] = before
                changed.append(before)
        return changed, records

    def _rules_of(self, partition: PartitionState) -> Rules:
        return self._rules.of(self._state.topics.get(partition.topic_partition.topic))

    def _record(self, before: PartitionState, after: PartitionState, cause: str) -> Elected | IsrChanged:
        if before.leader == after.leader:
            return IsrChanged(after, before.isr, self.controller_epoch, cause)
        from_isr = after.leader in before.isr
        clean = from_isr or after.leader in before.elr or after.leader == NO_LEADER
        clean = clean or "unclean_called_clean" in self._knobs.bugs
        return Elected(after, clean, from_isr, before.leader, self.controller_epoch, cause)

    def _elect(self, request: ElectionRequested) -> list[ControllerEffect]:
        """An operator's election."""
        before = self._state.partitions.get(request.topic_partition)
        if before is None:
            return [AnswerElection(request.token, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)]
        live = self._offline.live(before.topic_partition, self.live_brokers)
        after = choose(before, request.leader, live, self._rules_of(before), unclean=request.unclean)
        if isinstance(after, ErrorCode):
            return [AnswerElection(request.token, after, before)]
        self._state.partitions[after.topic_partition] = after
        return [
            self._persist(),
            self._record(before, after, "an operator's election"),
            AnswerElection(request.token, NO_ERROR, after),
            *self._send([after]),
        ]

    # ------------------------------------------------------------------------------------------------ AlterPartition

    def _change_isr(self, request: IsrChangeRequested) -> list[ControllerEffect]:
        before = self._state.partitions.get(request.topic_partition)
        error = self._proposals.error(request, before)
        if before is None or error is not NO_ERROR:
            return self._refuse_isr(request, error, before)
        if set(request.isr) == set(before.isr):
            return [AnswerIsrChange(request.token, NO_ERROR, before)]
        after = with_isr(before, request.isr, self._rules_of(before))
        self._state.partitions[after.topic_partition] = after
        return [
            self._persist(),
            self._record(before, after, f"proposed by leader {request.broker}"),
            AnswerIsrChange(request.token, NO_ERROR, after),
            *self._send([after]),
        ]

    def _refuse_isr(
        self, request: IsrChangeRequested, error: ErrorCode, partition: PartitionState | None
    ) -> list[ControllerEffect]:
        """Refuse the proposal; a leader with an old state also gets the current one."""
        effects: list[ControllerEffect] = [AnswerIsrChange(request.token, error, partition)]
        behind = error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_UPDATE_VERSION)
        if behind and partition is not None and request.broker in self.live_brokers:
            effects += self._send_states(request.broker, (partition,))
        return effects

    # -------------------------------------------------------------------------------------- topics and producer ids

    def _create_topic(self, request: TopicCreationRequested) -> list[ControllerEffect]:
        created = topic_administration.create(self._state, request, self.live_brokers, self._knobs)
        if isinstance(created, Refusal):
            return [AnswerTopicCreation(request.token, created.error, created.message, -1, -1)]
        answer = AnswerTopicCreation(request.token, NO_ERROR, "", len(created), len(created[0].replicas))
        return self._founded(created, "topic created", answer)

    def _add_partitions(self, request: PartitionsRequested) -> list[ControllerEffect]:
        created = topic_administration.enlarge(self._state, request, self.live_brokers)
        if isinstance(created, Refusal):
            return [AnswerTopicChange(request.token, *created)]
        answer = AnswerTopicChange(request.token, NO_ERROR, "")
        return [answer] if request.validate_only else self._founded(created, "partitions added", answer)

    def _founded(
        self, created: list[PartitionState], cause: str, answer: AnswerTopicCreation | AnswerTopicChange
    ) -> list[ControllerEffect]:
        elections = [Elected(one, True, True, NO_LEADER, self.controller_epoch, cause) for one in created]
        return [self._persist(), *elections, *self._send(created, are_new=True), answer]

    def _delete_topic(self, request: TopicDeletionRequested) -> list[ControllerEffect]:
        leaders = {name: partition.leader for name, partition in self._state.partitions.items()}
        ended = topic_administration.delete(self._state, request.topic)
        if isinstance(ended, Refusal):
            return [AnswerTopicChange(request.token, *ended)]
        epoch, cause = self.controller_epoch, "topic deleted"
        records = [Elected(one, True, False, leaders[one.topic_partition], epoch, cause) for one in ended]
        answer = AnswerTopicChange(request.token, NO_ERROR, "")
        return [self._persist(), *records, *self._send_deletions(self.live_brokers), *self._send([]), answer]

    def _hear_of_deletions(self, answer: ReplicasDeleted) -> list[ControllerEffect]:
        if self._state.broker_error(answer.broker, answer.broker_epoch) is not NO_ERROR:
            return []
        self._state.doomed = tuple(one for one in self._state.doomed if one not in answer.replicas)
        return [self._persist()]

    def _configure_topic(self, request: ConfigsRequested) -> list[ControllerEffect]:
        """Change configurations; with others for elections, a partition without a leader may get one."""
        changed = topic_administration.configure(self._state, request)
        if isinstance(changed, Refusal):
            return [AnswerTopicChange(request.token, *changed)]
        answer = AnswerTopicChange(request.token, NO_ERROR, "")
        if not changed:
            return [answer]
        states, records = self._settle(f"configurations of topic {request.topic}")
        return [self._persist(), *records, *self._send(states), answer]

    def _allocate_producer_ids(self, request: ProducerIdsRequested) -> list[ControllerEffect]:
        error = self._state.broker_error(request.broker, request.broker_epoch)
        if error is not NO_ERROR:
            return [AnswerProducerIds(request.token, error, -1, 0)]
        first = self._state.next_producer_id
        self._state.next_producer_id += PRODUCER_ID_BLOCK
        return [self._persist(), AnswerProducerIds(request.token, NO_ERROR, first, PRODUCER_ID_BLOCK)]

    # ----------------------------------------------------------------------------------------------------- effects

    def _persist(self) -> Persist:
        before, self._written = self._written, self.to_state()
        return Persist(before if "state_written_late" in self._knobs.bugs else self._written)

    def _send_deletions(self, brokers: Iterable[NodeId]) -> list[ControllerEffect]:
        """Send brokers the replicas that they still have to delete."""
        doomed = {node: tuple(one for one in self._state.doomed if one.broker == node) for node in brokers}
        return [SendDeletions(node, self.controller_epoch, replicas) for node, replicas in doomed.items() if replicas]

    def _send(
        self, changed: Iterable[PartitionState], *, newcomer: NodeId | None = None, are_new: bool = False
    ) -> list[ControllerEffect]:
        """Send every live replica its changes, a new broker its whole state, and all brokers the metadata."""
        news, live = tuple(changed), self.live_brokers
        effects = self._send_deletions([newcomer] if newcomer is not None else [])
        for node in live:
            mine = (one for one in (self.partitions if node == newcomer else news) if node in one.replicas)
            effects += self._send_states(node, tuple(mine), are_new=are_new)
        endpoints = tuple(BrokerEndpoint(r.broker, r.host, r.port) for r in self.brokers if r.live)
        epochs, offline = tuple(r.epoch for r in self.brokers if r.live), self._offline.replicas
        seen = (endpoints, self.partitions, offline, epochs, self.topics)
        return [*effects, SendMetadata(live, self.controller_epoch, *seen)]

    def _send_states(
        self, node: NodeId, partitions: tuple[PartitionState, ...], *, are_new: bool = False
    ) -> list[ControllerEffect]:
        """Send a broker the states of some of its replicas; nothing if there are none."""
        named = {partition.topic_partition.topic for partition in partitions}
        topics = tuple(topic for name, topic in self._state.topics.items() if name in named)
        return [SendPartitionStates(node, self.controller_epoch, partitions, are_new, topics)] if partitions else []
