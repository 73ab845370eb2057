"""Coordinators and producer ids: FindCoordinator and InitProducerId (the ``*.json`` of those names)."""

from __future__ import annotations

from harness.model import NO_EPOCH
from harness.wire.declaration import (
    Message,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    nullable_string,
    request,
    response,
    sentence,
    string,
    strings,
    struct,
)
from harness.wire.keys import ApiKey

_NO_NODE = -1


@request(ApiKey.FIND_COORDINATOR, versions=(0, 6), flexible=3)
class FindCoordinatorRequest(Message):
    """Asks for the coordinator of a group (``key_type`` 0) or transactional id (1); of several from v4 on."""

    key: str = string(until=3)
    key_type: int = int8(since=1)
    coordinator_keys: list[str] = strings(since=4)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`. A port of 0 would poison librdkafka's table of brokers."""
        keys = [Coordinator(key, _NO_NODE, "", _NO_NODE, error) for key in self.coordinator_keys]
        return FindCoordinatorResponse(error_code=error, node_id=_NO_NODE, port=_NO_NODE, coordinators=keys)


@struct
class Coordinator(Struct):
    """The coordinator of one key."""

    key: str = string(since=4)
    node_id: int = int32(since=4)
    host: str = string(since=4)
    port: int = int32(since=4)
    error_code: int = int16(since=4)
    error_message: str | None = sentence(since=4)


@response(ApiKey.FIND_COORDINATOR, versions=(0, 6), flexible=3)
class FindCoordinatorResponse(Message):
    """The coordinator, in the response itself up to v3 and in ``coordinators`` from v4 on.

    A port of 0 poisons librdkafka's broker table for that node: on error answer host "" and port and node -1.
    """

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16(until=3)
    error_message: str | None = sentence(since=1, until=3)
    node_id: int = int32(until=3)
    host: str = string(until=3)
    port: int = int32(until=3)
    coordinators: list[Coordinator] = array(Coordinator, since=4)


@request(ApiKey.INIT_PRODUCER_ID, versions=(0, 5), flexible=2)
class InitProducerIdRequest(Message):
    """Asks for a producer id; ``transactional_id`` None: for an idempotent producer without transactions."""

    transactional_id: str | None = nullable_string()
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(since=3, default=-1)
    producer_epoch: int = int16(since=3, default=-1)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return InitProducerIdResponse(error_code=error, producer_epoch=NO_EPOCH)


@response(ApiKey.INIT_PRODUCER_ID, versions=(0, 5), flexible=2)
class InitProducerIdResponse(Message):
    """A producer id and its epoch."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
