"""Every request that a node serves can be refused as a whole, however long what it names."""

from __future__ import annotations

from typing import Any

import pytest

from harness.error_codes import ErrorCode
from harness.wire.declaration import MAX_STRING_BYTES, MESSAGES, Message, Struct, default_of, wire_fields
from harness.wire.frames import decode_response, encode_response
from harness.wire.messages.log_dirs import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
from harness.wire.messages.produce import ProduceRequest
from tests.harness.broker.virtual_cluster import VirtualCluster

SERVED = sorted(VirtualCluster().brokers[0].handlers.keys() | VirtualCluster().controller.handlers.keys())
EVERY = [
    pytest.param(MESSAGES["request", key], version, id=f"{key.name}-v{version}")
    for key in SERVED
    for version in range(MESSAGES["request", key].versions[0], MESSAGES["request", key].versions[1] + 1)
]
LONGEST = "x" * MAX_STRING_BYTES


def filled(cls: type[Struct], version: int) -> Any:
    """With one element in every list, and the longest name wherever there is one."""
    made = cls()
    for name, wire in wire_fields(cls, version):
        setattr(made, name, _value(wire.kind, wire.element, default_of(cls, name), version))
    return made


def _value(kind: str, element: Any, default: Any, version: int) -> Any:
    if kind == "string":
        return LONGEST
    if kind == "array":
        return [filled(element, version) if isinstance(element, type) else _value(element, None, 7, version)]
    return default


def errors(body: Struct, version: int) -> set[int]:
    """Every error code in a message, wherever it is."""
    found = set()
    for name, _ in wire_fields(type(body), version):
        value = getattr(body, name)
        if name in ("error_code", "partition_error_code"):
            found.add(value)
        elif isinstance(value, list):
            found.update(code for part in value if isinstance(part, Struct) for code in errors(part, version))
    return found


@pytest.mark.parametrize(("cls", "version"), EVERY)
def test_a_refusal_lacks_an_answer_that_says_so_and_can_be_sent(cls: type[Message], version: int) -> None:
    request = filled(cls, version)
    if isinstance(request, ProduceRequest):
        request.acks = -1
    body = request.error_response(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert body is not None
    sent = b"".join(encode_response(cls.api_key, version, 7, body))
    correlation_id, heard = decode_response(cls.api_key, version, sent)
    assert correlation_id == 7
    has_no_place = cls is DescribeLogDirsRequest and version < 3
    assert errors(heard, version) == (set() if has_no_place else {ErrorCode.UNKNOWN_SERVER_ERROR})


def test_a_produce_that_wants_no_answer_has_no_refusal() -> None:
    assert ProduceRequest(acks=0).error_response(ErrorCode.UNKNOWN_SERVER_ERROR) is None


def test_what_nobody_serves_is_not_refused() -> None:
    with pytest.raises(NotImplementedError, match="AlterReplicaLogDirsRequest is served by no node"):
        AlterReplicaLogDirsRequest().error_response(ErrorCode.UNKNOWN_SERVER_ERROR)
