"""The events that the controller takes, and the *ordered* effects that it returns.

As with the replica, a driver performs the effects of ``handle(event)`` in order. :class:`Persist` precedes
everything that depends on it: when it fails, none of the effects after it may be performed, and the controller
must stop. ``token`` is the driver's own handle for a waiting request; the core only hands it back. Times are
monotonic nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from harness.error_codes import ErrorCode
from harness.model import NO_LEADER, NodeId, TopicPartition
from harness.replication.message import message
from harness.replication.messages import Tick
from harness.replication.topic_configs import Alteration


class PartitionState(NamedTuple):
    """The controller's state of one partition.

    ``leader_epoch`` grows with each change of leader (to none, too) and, with ``shrink_raises_epoch``, with each member
    that the controller takes out of the ISR; ``partition_epoch`` with each change at all. ``leader`` is ``NO_LEADER``
    while no replica that may lead is alive.

    The last three are KIP-966's: ``elr``, the replicas outside the ISR that hold every committed record;
    ``last_known_elr``, those that were in the ISR or ELR since the ISR fell below ``min.insync.replicas``, but may have
    lost records; and ``last_known_leader``, the last resort while there is no leader. Always empty where leaders are
    elected from the ISR alone.
    """

    topic_partition: TopicPartition
    leader: NodeId
    leader_epoch: int
    partition_epoch: int
    isr: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]
    elr: tuple[NodeId, ...] = ()
    last_known_elr: tuple[NodeId, ...] = ()
    last_known_leader: NodeId = NO_LEADER


class TopicState(NamedTuple):
    """What the controller knows of a topic as a whole.

    ``incarnation`` is the number of topics of this name that were deleted before it: with the name it is the topic's
    id. ``configs`` are those that are not the cluster's, by ascending name.
    """

    topic: str
    incarnation: int = 0
    configs: tuple[tuple[str, str], ...] = ()


class DoomedReplica(NamedTuple):
    """A replica of a deleted topic that its broker has not deleted yet, as far as the controller knows.

    ``leader_epoch`` is that in which the topic was deleted.
    """

    broker: NodeId
    topic_partition: TopicPartition
    incarnation: int
    leader_epoch: int


class BrokerEndpoint(NamedTuple):
    """The address of a broker for clients and peers."""

    broker: NodeId
    host: str
    port: int


# ------------------------------------------------------------------------------------------------------- events


@message
class ControllerStarted:
    """The first event: a new controller epoch begins. Known brokers get a new session."""

    now_ns: int


@message
class RegistrationRequested:
    """A broker process registers (``BrokerRegistrationRequest``). ``incarnation_id`` is unique to it.

    ``previous_broker_epoch`` is the epoch with which this broker last shut down cleanly; -1: it did not, or that is
    unknown (KIP-966).
    """

    token: object
    broker: NodeId
    incarnation_id: str
    host: str
    port: int
    now_ns: int
    previous_broker_epoch: int = -1


@message
class HeartbeatReceived:
    """A broker keeps its session alive (``BrokerHeartbeatRequest``), and names the log directories it has lost."""

    token: object
    broker: NodeId
    broker_epoch: int
    now_ns: int
    offline_log_dirs: tuple[str, ...] = ()


@message
class TopicCreationRequested:
    """One topic of a ``CreateTopicsRequest``.

    Either ``assignments`` names the replicas of each partition from 0 on, in order of preference, and both
    numbers are -1; or it is None. The driver fills in defaults (a number of -1 without assignments).
    """

    token: object
    topic: str
    num_partitions: int
    replication_factor: int
    assignments: tuple[tuple[NodeId, ...], ...] | None
    alterations: tuple[Alteration, ...] = ()


@message
class TopicDeletionRequested:
    """One topic of a ``DeleteTopicsRequest``."""

    token: object
    topic: str


@message
class PartitionsRequested:
    """One topic of a ``CreatePartitionsRequest``: it is to have ``count`` partitions in all.

    ``assignments`` are the replicas of the new ones; None: the controller chooses them.
    """

    token: object
    topic: str
    count: int
    assignments: tuple[tuple[NodeId, ...], ...] | None
    validate_only: bool = False


@message
class ConfigsRequested:
    """One topic of an ``AlterConfigsRequest``, which ``replaces`` all, or of an ``IncrementalAlterConfigsRequest``."""

    token: object
    topic: str
    alterations: tuple[Alteration, ...]
    replaces: bool
    validate_only: bool = False


@message
class ReplicasDeleted:
    """A broker has answered :class:`SendDeletions`: it has none of ``replicas`` any more."""

    broker: NodeId
    broker_epoch: int
    replicas: tuple[DoomedReplica, ...]


@message
class IsrChangeRequested:
    """One partition of an ``AlterPartitionRequest``: a leader proposes an in-sync set.

    ``broker_epochs`` are those of its members, in its order; -1, or nothing at all: unknown.
    """

    token: object
    broker: NodeId
    broker_epoch: int
    topic_partition: TopicPartition
    leader_epoch: int
    partition_epoch: int
    isr: tuple[NodeId, ...]
    broker_epochs: tuple[int, ...] = ()


@message
class ElectionRequested:
    """An operator requests another leader (``ElectLeadersRequest``, extended by ``leader``).

    ``leader`` None: the preferred one, the first of the replicas; or with ``unclean`` any live replica, if there is no
    leader. A replica that is not eligible is elected only with ``unclean``.
    """

    token: object
    topic_partition: TopicPartition
    leader: NodeId | None
    unclean: bool
    now_ns: int


@message
class ProducerIdsRequested:
    """A broker requests a block of producer ids (``AllocateProducerIdsRequest``)."""

    token: object
    broker: NodeId
    broker_epoch: int


@message
class ReplicasAnswered:
    """A broker answered :class:`SendPartitionStates`: the replicas it can use, and those in a lost log directory.

    Replicas that it refused for other reasons are in neither.
    """

    broker: NodeId
    broker_epoch: int
    offline: tuple[TopicPartition, ...]
    online: tuple[TopicPartition, ...]


@message
class ReplicaPlaced:
    """A replica has moved to another log directory (``AssignReplicasToDirsRequest``, KIP-858)."""

    token: object
    broker: NodeId
    broker_epoch: int
    topic_partition: TopicPartition


ControllerEvent: TypeAlias = (
    ControllerStarted | RegistrationRequested | HeartbeatReceived | TopicCreationRequested | TopicDeletionRequested
    | PartitionsRequested | ConfigsRequested | ReplicasDeleted | IsrChangeRequested | ElectionRequested
    | ProducerIdsRequested | ReplicasAnswered | ReplicaPlaced | Tick
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------ effects


@message
class Persist:
    """Make ``snapshot`` (plain JSON data, the controller's whole state) durable before the next effects."""

    snapshot: Mapping[str, object]


@message
class SendPartitionStates:
    """Send ``LeaderAndIsr`` to ``broker``.

    The driver repeats it until the broker answers or its session ends; per partition the newest state replaces an
    older one that has not been delivered.

    ``are_new``: the partitions have just been created, so that a broker may create the replicas although it has lost a
    log directory. ``topics`` are those of the partitions.
    """

    broker: NodeId
    controller_epoch: int
    partitions: tuple[PartitionState, ...]
    are_new: bool = False
    topics: tuple[TopicState, ...] = ()


@message
class SendDeletions:
    """Send ``StopReplica`` to ``broker``, which is to delete ``replicas``.

    The driver repeats it until the broker answers or its session ends, and sends nothing about a topic of the same name
    before.
    """

    broker: NodeId
    controller_epoch: int
    replicas: tuple[DoomedReplica, ...]


@message
class SendMetadata:
    """Send ``UpdateMetadata`` with the whole cluster to each of ``brokers``; a newer one replaces an older one.

    ``offline`` are the replicas of live brokers that lie in log directories that have failed. ``broker_epochs`` are
    those of ``live_brokers``, in their order. ``topics`` are all of them.
    """

    brokers: tuple[NodeId, ...]
    controller_epoch: int
    live_brokers: tuple[BrokerEndpoint, ...]
    partitions: tuple[PartitionState, ...]
    offline: tuple[tuple[TopicPartition, NodeId], ...] = ()
    broker_epochs: tuple[int, ...] = ()
    topics: tuple[TopicState, ...] = ()

    @property
    def sessions(self) -> tuple[tuple[NodeId, int], ...]:
        """The live brokers with their broker epochs."""
        return tuple((one.broker, epoch) for one, epoch in zip(self.live_brokers, self.broker_epochs, strict=True))


@message
class AnswerRegistration:
    """``broker_epoch`` is -1 on error."""

    token: object
    error: ErrorCode
    broker_epoch: int


@message
class AnswerHeartbeat:
    """Answer a heartbeat; after an error the broker must register again."""

    token: object
    error: ErrorCode


@message
class AnswerTopicCreation:
    """``message`` is the error; empty on success. ``partitions`` and ``replication_factor``: as created."""

    token: object
    error: ErrorCode
    message: str
    num_partitions: int
    replication_factor: int


@message
class AnswerTopicChange:
    """Answer a request to delete a topic, to add partitions, or to change configurations; ``message``: the error."""

    token: object
    error: ErrorCode
    message: str


@message
class AnswerIsrChange:
    """``partition`` is the state after the change, or on error as it is; None: no such partition."""

    token: object
    error: ErrorCode
    partition: PartitionState | None


@message
class AnswerElection:
    """``partition`` is the state after the election, or on error as it is; None: no such partition."""

    token: object
    error: ErrorCode
    partition: PartitionState | None


@message
class AnswerProducerIds:
    """Producer ids ``first .. first + count - 1`` belong to the asking broker; -1 and 0 on error."""

    token: object
    error: ErrorCode
    first: int
    count: int


@message
class AnswerPlacement:
    """Answer a broker's report of a log directory."""

    token: object
    error: ErrorCode


@message
class Elected:
    """For the timeline: the leader changed. ``clean``: no leader, or one that was in the ISR or ELR.

    A loss by an unclean election is documented.
    """

    partition: PartitionState
    clean: bool
    elected_from_isr: bool
    previous_leader: NodeId
    controller_epoch: int
    cause: str


@message
class IsrChanged:
    """For the timeline: the ISR changed, the leader did not; or a new controller found the partition like this."""

    partition: PartitionState
    previous_isr: tuple[NodeId, ...]
    controller_epoch: int
    cause: str


@message
class SessionChanged:
    """For the timeline: a broker's session began, ended, or began again without a new registration.

    ``bounced``: a new process of the broker took over the session of an old one.
    """

    broker: NodeId
    change: Literal["registered", "expired", "returned", "bounced"]
    broker_epoch: int
    controller_epoch: int


ControllerEffect: TypeAlias = (
    Persist | SendPartitionStates | SendDeletions | SendMetadata | AnswerRegistration | AnswerHeartbeat
    | AnswerTopicCreation | AnswerTopicChange | AnswerIsrChange | AnswerElection | AnswerProducerIds | AnswerPlacement
    | Elected | IsrChanged | SessionChanged
)  # fmt: skip
