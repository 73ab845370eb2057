"""Reads the decisions of Kafka's controllers from ZooKeeper's transaction log while ZooKeeper writes it.

A file ``log.<zxid>`` begins with 16 bytes (``FileHeader``), and then has for each transaction a checksum (int64), a
length (int32), a header (session int64, xid int32, zxid int64, time int64, type int32), the transaction, and the byte
``B``. ZooKeeper preallocates it with zeros, so a length of 0 is the end so far. See ZooKeeper's
``FileTxnLog.java`` and ``zookeeper.jute``. Kafka keeps a partition's leader and ISR in
``/brokers/topics/T/partitions/P/state``, whose version is the partition epoch; its replicas in ``/brokers/topics/T``;
and a broker with a session in ``/brokers/ids/N``, which ends with the session.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.model import NodeId, TopicPartition
from harness.replication.controller_messages import PartitionState
from harness.targets.kafka.decisions import Decision, PartitionDecision, SessionDecision
from harness.targets.kafka.growing_log import GrowingLog, Mark

DIRECTORY = "version-2"
"""Of the logs, below ZooKeeper's data directory."""

_FILE_HEADER_BYTES = 16
_ENTRY = struct.Struct(">qi")
_HEADER = struct.Struct(">qiqqi")
_INT = struct.Struct(">i")
_END = ord("B")

_CREATES = frozenset({1, 15, 19, 21})
_DELETES = frozenset({2, 20})
_SET_DATA, _MULTI, _CLOSE_SESSION = 5, 14, -11
"""The types of transactions (``ZooDefs.OpCode``)."""

_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_TOPIC = re.compile(r"/brokers/topics/([^/]+)")
_BROKER = re.compile(r"/brokers/ids/(\d+)")


class _Transaction(NamedTuple):
    """One of them; ``body`` is what follows its header."""

    session: int
    zxid: int
    wall_ms: int
    kind: int
    body: memoryview

    @property
    def source(self) -> str:
        """Its place in the log."""
        return f"transaction {self.zxid:#x} of ZooKeeper"


class ZooKeeperLog(GrowingLog):
    """A :class:`~harness.targets.kafka.decisions.ControllerLog`.

    Args:
        directory: of the log's files; it need not exist yet.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        super().__init__()

    def _forget(self) -> None:
        self._position: dict[Path, int] = {}
        self._last_zxid = 0
        self._replicas: dict[TopicPartition, tuple[NodeId, ...]] = {}
        self._partitions: dict[TopicPartition, PartitionState] = {}
        self._sessions: dict[int, int] = {}

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionState]:
        """See :class:`~harness.targets.kafka.decisions.ControllerLog`."""
        return self._partitions

    @property
    def live(self) -> Sequence[NodeId]:
        """See :class:`~harness.targets.kafka.decisions.ControllerLog`."""
        return sorted(map(NodeId, self._sessions))

    @property
    def controller(self) -> None:
        """See :class:`~harness.targets.kafka.decisions.ControllerLog`."""
        return None

    def _read(self) -> Iterator[Decision]:
        for path in sorted(self._directory.glob("log.*"), key=lambda path: int(path.suffix[1:], 16)):
            for transaction in self._new_transactions(path):
                yield from self._apply(transaction)

    def _new_transactions(self, path: Path) -> Iterator[_Transaction]:
        """The whole transactions behind those that have been read."""
        position = self._position.get(path, _FILE_HEADER_BYTES)
        with path.open("rb") as file:
            while True:
                file.seek(position)
                prefix = file.read(_ENTRY.size)
                length = _ENTRY.unpack(prefix)[1] if len(prefix) == _ENTRY.size else 0
                entry = file.read(length + 1)
                if length < _HEADER.size or len(entry) <= length or entry[length] != _END:
                    return
                self._last = Mark(path, position, prefix + entry)
                position += _ENTRY.size + len(entry)
                self._position[path] = position
                session, _, zxid, wall_ms, kind = _HEADER.unpack_from(entry)
                if zxid > self._last_zxid:
                    self._last_zxid = zxid
                    yield _Transaction(session, zxid, wall_ms, kind, memoryview(entry)[_HEADER.size : length])

    def _apply(self, transaction: _Transaction) -> Iterator[Decision]:
        kind, body = transaction.kind, transaction.body
        if kind == _MULTI:
            (count,) = _INT.unpack_from(body)
            position = _INT.size
            for _ in range(count):
                (kind,) = _INT.unpack_from(body, position)
                part, position = _buffer(body, position + _INT.size)
                yield from self._apply(transaction._replace(kind=kind, body=part))
        elif kind == _CLOSE_SESSION:
            for broker in [one for one, session in self._sessions.items() if session == transaction.session]:
                yield self._expired(broker, transaction)
        elif kind in _DELETES:
            yield from self._deleted(str(_buffer(body, 0)[0], "utf-8"), transaction)
        elif kind in _CREATES or kind == _SET_DATA:
            path, position = _buffer(body, 0)
            data, position = _buffer(body, position)
            version = _INT.unpack_from(body, position)[0] if kind == _SET_DATA else 0
            yield from self._written(str(path, "utf-8"), bytes(data), version, transaction)

    def _written(self, path: str, data: bytes, version: int, transaction: _Transaction) -> Iterator[Decision]:
        if found := _STATE.fullmatch(path):
            name = TopicPartition(found[1], int(found[2]))
            yield self._decided(name, json.loads(data), version, transaction)
        elif found := _TOPIC.fullmatch(path):
            for number, replicas in json.loads(data)["partitions"].items():
                self._assigned(TopicPartition(found[1], int(number)), tuple(map(NodeId, replicas)))
        elif found := _BROKER.fullmatch(path):
            new = int(found[1]) not in self._sessions
            self._sessions[int(found[1])] = transaction.session
            if new:
                yield SessionDecision(NodeId(int(found[1])), "registered", transaction.wall_ms, transaction.source)

    def _decided(
        self, name: TopicPartition, state: Mapping[str, Any], version: int, transaction: _Transaction
    ) -> Decision:
        before = self._partitions.get(name)
        after = PartitionState(
            name,
            NodeId(state["leader"]),
            state["leader_epoch"],
            version,
            tuple(map(NodeId, state["isr"])),
            self._replicas.get(name, ()),
        )
        self._partitions[name] = after
        return PartitionDecision(before, after, state["controller_epoch"], transaction.wall_ms, transaction.source)

    def _assigned(self, name: TopicPartition, replicas: tuple[NodeId, ...]) -> None:
        self._replicas[name] = replicas
        if name in self._partitions:
            self._partitions[name] = self._partitions[name]._replace(replicas=replicas)

    def _deleted(self, path: str, transaction: _Transaction) -> Iterator[Decision]:
        if found := _STATE.fullmatch(path):
            self._partitions.pop(TopicPartition(found[1], int(found[2])), None)
        elif (found := _BROKER.fullmatch(path)) and int(found[1]) in self._sessions:
            yield self._expired(int(found[1]), transaction)

    def _expired(self, broker: int, transaction: _Transaction) -> Decision:
        del self._sessions[broker]
        return SessionDecision(NodeId(broker), "expired", transaction.wall_ms, transaction.source)


def _buffer(body: memoryview, position: int) -> tuple[memoryview, int]:
    """A length (int32, -1: null) and so many bytes, and the position behind them."""
    (length,) = _INT.unpack_from(body, position)
    position += _INT.size
    return body[position : position + max(0, length)], position + max(0, length)
