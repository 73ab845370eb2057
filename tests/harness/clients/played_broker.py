"""A broker of a few lines for librdkafka: it answers Produce with the error code that a test chooses."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from itertools import count

from confluent_kafka import KafkaError

from harness.wire.declaration import Message
from harness.wire.frames import RequestHeader, decode_request, encode_response
from harness.wire.keys import ApiKey
from harness.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from harness.wire.messages.coordination import InitProducerIdResponse
from harness.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from harness.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

TOPIC = "ledger"

_VERSIONS = {
    ApiKey.API_VERSIONS: (0, 3),
    ApiKey.METADATA: (0, 9),
    ApiKey.PRODUCE: (3, 8),
    ApiKey.INIT_PRODUCER_ID: (0, 4),
}


class PlayedBroker:
    """Leads partition 0 of the topic and listens until it is closed.

    Attributes:
        produce_error: the code that Produce is answered with; 0: the records are taken.
        producer_ids: how many were given out.
    """

    def __init__(self) -> None:
        self.produce_error: int = KafkaError.NO_ERROR
        self.producer_ids = 0
        self._offsets = count()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._host, self._port = self._server.getsockname()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def bootstrap(self) -> str:
        return f"{self._host}:{self._port}"

    def __enter__(self) -> PlayedBroker:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as stream:
            while prefix := stream.read(4):
                header, _ = decode_request(stream.read(struct.unpack(">i", prefix)[0]))
                frame = b"".join(
                    encode_response(header.api_key, header.api_version, header.correlation_id, self._answer(header))
                )
                connection.sendall(struct.pack(">i", len(frame)) + frame)

    def _answer(self, header: RequestHeader) -> Message:
        match header.api_key:
            case ApiKey.API_VERSIONS:
                return ApiVersionsResponse(api_keys=[ApiVersion(key, *span) for key, span in _VERSIONS.items()])
            case ApiKey.METADATA:
                partition = MetadataResponsePartition(0, 0, 0, replica_nodes=[0], isr_nodes=[0])
                topic = MetadataResponseTopic(name=TOPIC, partitions=[partition])
                broker = MetadataResponseBroker(0, self._host, self._port)
                return MetadataResponse(brokers=[broker], controller_id=0, topics=[topic])
            case ApiKey.INIT_PRODUCER_ID:
                self.producer_ids += 1
                return InitProducerIdResponse(producer_id=self.producer_ids)
            case ApiKey.PRODUCE:
                offset = -1 if self.produce_error else next(self._offsets)
                answer = PartitionProduceResponse(0, self.produce_error, offset)
                return ProduceResponse([TopicProduceResponse(TOPIC, partition_responses=[answer])])
        raise AssertionError(f"{header.api_key.name} is not played")
