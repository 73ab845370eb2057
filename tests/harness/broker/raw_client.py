"""A client that speaks the wire protocol over a blocking socket and hides nothing."""

from __future__ import annotations

import socket
import struct
from itertools import count
from typing import Any

from harness.wire import batches as wire
from harness.wire.declaration import Message
from harness.wire.frames import RequestHeader, decode_response, encode_request
from harness.wire.keys import ApiKey
from harness.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from harness.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

_PATIENCE_S = 60.0
_MOMENT_S = 0.3
"""How long one waits for what must not come."""


class RawClient:
    def __init__(self, ip: str, port: int = 9092, source: str | None = None) -> None:
        own = None if source is None else (source, 0)
        self.socket = socket.create_connection((ip, port), timeout=_PATIENCE_S, source_address=own)
        self._ids = count()

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, key: ApiKey, version: int, body: Message) -> int:
        correlation_id = next(self._ids)
        frame = b"".join(encode_request(RequestHeader(key, version, correlation_id, "raw"), body))
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        return correlation_id

    def receive(self, key: ApiKey, version: int) -> tuple[int, Any]:
        (size,) = struct.unpack(">i", self._exactly(4))
        return decode_response(key, version, self._exactly(size))

    def ask(self, key: ApiKey, version: int, body: Message) -> Any:
        sent = self.send(key, version, body)
        correlation_id, answer = self.receive(key, version)
        assert correlation_id == sent
        return answer

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise ConnectionResetError("hung up")
            data += more
        return data

    def hears_nothing(self) -> bool:
        self.socket.settimeout(_MOMENT_S)
        try:
            self.socket.recv(1)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(_PATIENCE_S)
        return False

    def is_hung_up(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def produce_request(
    topic: str, records: bytes | bytearray, acks: int = -1, partition: int = 0, **fields: Any
) -> ProduceRequest:
    data = TopicProduceData(topic, partition_data=[PartitionProduceData(partition, records)])
    return ProduceRequest(acks=acks, timeout_ms=fields.pop("timeout_ms", 30_000), topic_data=[data], **fields)


def batch(*values: bytes, **fields: Any) -> bytearray:
    return wire.build(values or [b"value"], **fields)


def fetch_request(topic: str, offset: int, partition: int = 0, **fields: Any) -> FetchRequest:
    epoch = fields.pop("current_leader_epoch", -1)
    part = FetchPartition(partition, epoch, offset, partition_max_bytes=fields.pop("partition_max_bytes", 1 << 20))
    defaults = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 24}
    return FetchRequest(**(defaults | fields), topics=[FetchTopic(topic, partitions=[part])])
