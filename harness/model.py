"""The types that all parts share: offsets, node ids, partitions and links.

Offsets: ``log_end_offset`` and ``high_watermark`` are both **exclusive**. "Below the high watermark" means
``offset < high_watermark``; the next record appended gets ``offset == log_end_offset``. Every other bound
in the project that is called ``end`` or ``..._end_offset`` is exclusive too.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, NewType

Offset = int
"""The position of a record in a partition, from 0."""

NodeId = NewType("NodeId", int)
"""A broker's ``node.id`` (0, 1, 2 ...), ``CONTROLLER_ID``, or beyond it those of the controllers of a quorum."""

ProcessId = NewType("ProcessId", int)
"""A logical client process in the history (Jepsen's ``:process``); one per client, never reused."""

CONTROLLER_ID = NodeId(100)
"""The node id of a cluster's only controller; of several, the timeline's node id of their decisions."""

CLIENTS = "clients"
"""The name of the end of a link that is not a node of the cluster: all client connections."""

CONTROLLER = "controller"
"""The name of the controller as the end of a link or the aim of a fault; those of a quorum are ``controller-1`` ..."""

NO_LEADER = NodeId(-1)
"""The leader of a partition without one, as in Kafka's metadata responses."""

NO_NODE = NodeId(-1)
"""The timeline's node id of rows that no node has written: what the cluster told a client of itself."""

NO_EPOCH = -1
"""An unknown leader epoch (Kafka's ``UNDEFINED_EPOCH``)."""

NO_GENERATION = -1
"""The generation of a group that never had a member, and of a consumer outside of any group."""

GroupProtocol = Literal["classic", "consumer"]
"""How the members of a consumer group agree on who reads what: among themselves, or by their coordinator (KIP-848)."""

Acknowledgement = Literal["accept", "release", "reject"]
"""What a share consumer says of a record (KIP-932): accept ends it, release gives it back, reject discards it."""

NO_OFFSET = -1
"""An unknown offset (Kafka's ``UNDEFINED_EPOCH_OFFSET``)."""

CORE, STACK = "core", "stack"
"""How much of a broker a simulation runs: the replication core alone, or the whole broker."""


class TopicPartition(NamedTuple):
    """A partition of a topic, ordered by name and then number; prints as ``ledger-0``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def partition_named(name: str) -> TopicPartition:
    """The partition whose text is ``name``, ``ledger-0``.

    Raises:
        ValueError: the part after the last ``-`` is no decimal number.
    """
    topic, _, partition = name.rpartition("-")
    return TopicPartition(topic, int(partition))


class Link(NamedTuple):
    """A *directed* link: bytes flowing from ``source`` to ``destination``.

    An end is the name of a node (``"0"`` for broker 0) or ``CLIENTS``. Cutting ``2->1`` alone lets
    the replies of requests made by 1 to 2 vanish while 1's bytes still arrive at 2.
    """

    source: str
    destination: str

    def __str__(self) -> str:
        return f"{self.source}->{self.destination}"


def is_kafkas_own(topic: str) -> bool:
    """Whether a topic is one that Kafka keeps for itself, such as ``__consumer_offsets``."""
    return topic.startswith("__")


def node_name(node: NodeId) -> str:
    """The name of ``node`` as the end of a link: ``0``, ``controller``, ``controller-1`` for the first of a quorum."""
    if node <= CONTROLLER_ID:
        return CONTROLLER if node == CONTROLLER_ID else str(node)
    return f"{CONTROLLER}-{node - CONTROLLER_ID}"


def node_id(name: str) -> NodeId:
    """The node called ``name``: the inverse of :func:`node_name`.

    Raises:
        ValueError: ``name`` is neither that of a controller nor a decimal number.
    """
    if not name.startswith(CONTROLLER):
        return NodeId(int(name))
    number = name.removeprefix(CONTROLLER).removeprefix("-")
    return NodeId(CONTROLLER_ID + (int(number) if number else 0))


def is_broker(name: str) -> bool:
    """Whether ``name`` is that of a broker, which holds replicas."""
    return name.isdecimal()
