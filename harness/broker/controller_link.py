"""A broker's connection to the controller: registration, heartbeats, ISR proposals, forwarded requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from harness.broker.caller import Answered, Caller
from harness.broker.codes import name_of, replication_error
from harness.broker.ports import Network
from harness.broker.settings import NodeConfig
from harness.error_codes import ErrorCode
from harness.model import CONTROLLER, NodeId
from harness.replication.messages import IsrAnswered, ProposeIsr
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages.control import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionPartitionData,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicData,
    AssignedDirectory,
    AssignedPartition,
    AssignedTopic,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    BrokerState,
    Listener,
)

LISTENER_NAME = "PLAINTEXT"
_RETRY_S = 0.05


class ControllerLink:
    """Keeps this broker registered, and carries its requests.

    Args:
        config: this broker's id, and the controller's address.
        network: the port.
        incarnation_id: 16 bytes, unique to this start of the broker.
        say: one line to the operator.

    Attributes:
        broker_epoch: given by the controller; -1 while not registered.
    """

    def __init__(self, config: NodeConfig, network: Network, incarnation_id: bytes, say: Callable[[str], None]) -> None:
        self.broker_epoch = -1
        self._config = config
        self._network = network
        self._incarnation_id = incarnation_id
        self._say = say
        self._caller = Caller(network, config.controller, CONTROLLER, f"broker-{config.node_id}")
        self._timeout_s = config.settings.broker_session_timeout_ms / 1000
        self._last_refusal: int | None = None
        self._previous_broker_epoch = -1
        self._offline_log_dirs: list[bytes] = []

    @property
    def registered(self) -> bool:
        """Whether the controller has accepted this broker's registration."""
        return self.broker_epoch >= 0

    def start(self, previous_broker_epoch: int, offline_log_dirs: list[bytes]) -> None:
        """Register, and never stop trying.

        Args:
            previous_broker_epoch: of the life that ended with a clean shutdown just before this one; -1: of none.
            offline_log_dirs: the ids of the log directories that cannot be used.
        """
        self._previous_broker_epoch = previous_broker_epoch
        self._offline_log_dirs = offline_log_dirs
        self._register()

    def report_offline(self, log_dirs: list[bytes]) -> None:
        """Tell the controller, now and with every heartbeat, that these log directories cannot be used (KIP-858)."""
        self._offline_log_dirs = log_dirs
        if self.registered:
            self._send_heartbeat(lambda _: None)

    # ------------------------------------------------------------------------------------ session

    def _register(self) -> None:
        host, port = self._config.listener
        request = BrokerRegistrationRequest(
            self._config.node_id,
            self._config.cluster_id,
            self._incarnation_id,
            [Listener(LISTENER_NAME, host, port, 0)],
            previous_broker_epoch=self._previous_broker_epoch,
        )
        self._caller.call(ApiKey.BROKER_REGISTRATION, 3, request, self._timeout_s, self._registration_answered)

    def _registration_answered(self, body: Message | None) -> None:
        response = cast("BrokerRegistrationResponse | None", body)
        if response is not None and response.error_code == ErrorCode.NONE:
            self.broker_epoch = response.broker_epoch
            self._last_refusal = None
            self._say(f"Registered with the controller, broker epoch {self.broker_epoch}.")
            self._beat()
            return
        refusal = ErrorCode.REQUEST_TIMED_OUT if response is None else response.error_code
        if refusal != self._last_refusal:
            self._last_refusal = refusal
            self._say(f"Not registered: {name_of(refusal)}; trying again.")
        self._network.call_later(_RETRY_S, self._register)

    def _beat(self) -> None:
        self._send_heartbeat(self._heartbeat_answered)

    def _send_heartbeat(self, answered: Answered) -> None:
        request = BrokerHeartbeatRequest(
            self._config.node_id, self.broker_epoch, offline_log_dirs=self._offline_log_dirs
        )
        self._caller.call(ApiKey.BROKER_HEARTBEAT, 1, request, self._timeout_s, answered)

    def _heartbeat_answered(self, body: Message | None) -> None:
        response = cast("BrokerHeartbeatResponse | None", body)
        if response is not None and response.error_code != ErrorCode.NONE:
            self._say(f"The controller ended the session: {name_of(response.error_code)}; registering again.")
            self.broker_epoch = -1
            self._register()
            return
        self._network.call_later(self._config.settings.broker_heartbeat_interval_ms / 1000, self._beat)

    # ------------------------------------------------------------------------------------ requests

    def propose_isr(
        self, partition: int, topic_id: bytes, proposal: ProposeIsr, answered: Callable[[IsrAnswered], None]
    ) -> None:
        """Send ``AlterPartition``; ``answered`` is called exactly once, later."""
        epochs = proposal.broker_epochs or (-1,) * len(proposal.isr)
        data = AlterPartitionPartitionData(
            partition,
            proposal.leader_epoch,
            new_isr=list(proposal.isr),
            new_isr_with_epochs=[BrokerState(*pair) for pair in zip(proposal.isr, epochs, strict=True)],
            partition_epoch=proposal.partition_epoch,
        )
        request = AlterPartitionRequest(
            self._config.node_id,
            self.broker_epoch,
            [AlterPartitionTopicData(topic_id, [data])],
        )
        version = 3 if self._config.knobs.broker_epoch_check else 2
        self.call(ApiKey.ALTER_PARTITION, version, request, lambda body: answered(_isr_answer(body)))

    def place(self, partition: int, topic_id: bytes, log_dir: bytes) -> None:
        """Report the log directory of a replica, until the controller answers."""
        topic = AssignedTopic(topic_id, [AssignedPartition(partition)])
        request = AssignReplicasToDirsRequest(
            self._config.node_id, self.broker_epoch, [AssignedDirectory(log_dir, [topic])]
        )

        def answered(body: Message | None) -> None:
            response = cast("AssignReplicasToDirsResponse | None", body)
            if response is None or response.error_code:
                self._network.call_later(_RETRY_S, lambda: self.place(partition, topic_id, log_dir))

        self.call(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, request, answered)

    def allocate_producer_ids(self, answered: Callable[[range], None]) -> None:
        """Ask for a block of producer ids; an empty one when there is none to be had."""
        request = AllocateProducerIdsRequest(self._config.node_id, self.broker_epoch)
        self.call(ApiKey.ALLOCATE_PRODUCER_IDS, 0, request, lambda body: answered(_producer_ids(body)))

    def call(self, key: ApiKey, version: int, body: Message, answered: Answered) -> None:
        """Send any request; see :meth:`harness.broker.caller.Caller.call`."""
        self._caller.call(key, version, body, self._timeout_s, answered)


def _isr_answer(body: Message | None) -> IsrAnswered:
    response = cast("AlterPartitionResponse | None", body)
    if response is None:
        return IsrAnswered(ErrorCode.REQUEST_TIMED_OUT, (), -1, -1)
    if response.error_code:
        return IsrAnswered(replication_error(response.error_code), (), -1, -1)
    results: list[AlterPartitionPartitionResult] = [one for topic in response.topics for one in topic.partitions]
    if len(results) != 1:
        return IsrAnswered(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, (), -1, -1)
    (result,) = results
    isr = tuple(NodeId(node) for node in result.isr)
    return IsrAnswered(replication_error(result.error_code), isr, result.leader_epoch, result.partition_epoch)


def _producer_ids(body: Message | None) -> range:
    response = cast("AllocateProducerIdsResponse | None", body)
    if response is None or response.error_code:
        return range(0)
    return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)
