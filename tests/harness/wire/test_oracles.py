"""Two foreign codecs must read what we write and write what we read, byte for byte."""

from __future__ import annotations

import datetime as dt
import importlib
import io
import uuid
import warnings
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

from harness.wire.declaration import MESSAGES, Message, Struct, all_fields, default_of, wire_fields
from harness.wire.decoding import decoder
from harness.wire.encoding import Cuts, encoder
from harness.wire.frames import ADVERTISED, ApiKey, RequestHeader, decode_request, decode_response, encode_request
from harness.wire.frames import encode_response as encode_response_frame
from harness.wire.messages.api_versions import ApiVersionsResponse
from tests.harness.wire.every_message import sampled

pytestmark = pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning")

quick = settings(max_examples=3, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def versions(cls: type[Message]) -> range:
    return range(cls.versions[0], cls.versions[1] + 1)


_NOT_IN_KAFKA_PYTHON = (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE)


def kio_knows(cls: type[Message], version: int) -> bool:
    entity = EntityType.request if cls.direction == "request" else EntityType.response
    return entity in schema_name_map.get(api_key_map.get(cls.api_key, ""), {}).get(version, {})


def kio_class(cls: type[Message], version: int) -> Any:
    """Kio's class for a version; it is imported late, for all of them take seconds, and every worker collects."""
    load = load_request_schema if cls.direction == "request" else load_response_schema
    return load(cls.api_key, version)


def kafka_python_class(cls: type[Message]) -> Any:
    """Kafka-python's class for all versions; imported late, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        modules = [
            importlib.import_module(f"kafka.protocol.{name}") for name in ("producer", "consumer", "metadata", "admin")
        ]
    return next(getattr(module, cls.__name__) for module in modules if hasattr(module, cls.__name__))


KIO = [(cls, version) for cls in MESSAGES.values() for version in versions(cls) if kio_knows(cls, version)]
KAFKA_PYTHON = [cls for (_, key), cls in MESSAGES.items() if key in ADVERTISED and key not in _NOT_IN_KAFKA_PYTHON]
IN_KIO = [sampled(cls, version) for cls, version in KIO]
IN_KAFKA_PYTHON = [sampled(cls, version) for cls in KAFKA_PYTHON for version in versions(cls)]


def plain(value: Any) -> Any:
    """A value of ours or of kio's without the differences in how they present it."""
    if isinstance(value, Struct):
        return {name.removesuffix("_ms"): plain(getattr(value, name)) for name, _ in all_fields(type(value))}
    if is_dataclass(value):
        return {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, list | tuple):
        return [plain(element) for element in value]
    return plain_scalar(value)


def plain_scalar(value: Any) -> Any:
    match value:
        case dt.timedelta():
            return round(value / dt.timedelta(milliseconds=1))
        case dt.datetime():
            return round(value.timestamp() * 1000)
        case uuid.UUID():
            return value.bytes
        case memoryview():
            return bytes(value)
        case _:
            return value


def same(ours: Any, theirs: Any) -> bool:
    """Whether the parts that both know agree. Theirs has no fields that the version lacks."""
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and all(same(ours[name], value) for name, value in theirs.items())
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    return ours == theirs or (theirs is None and ours in (-1, bytes(16)))


def filled(value: Any, theirs: Any) -> Any:
    """``value`` with kio's default structs where ours are None."""
    if isinstance(theirs, dict):
        if value is None:
            return theirs if set(theirs.values()) == {-1} else None
        return {name: filled(value[name], theirs[name]) for name in theirs}
    if isinstance(theirs, list) and isinstance(value, list) and len(value) == len(theirs):
        return [filled(*pair) for pair in zip(value, theirs, strict=True)]
    return value


def encoded(body: Message, version: int) -> bytes:
    out, cuts = bytearray(), Cuts()
    encoder(type(body), version)(body, out, cuts)
    for position, blob in reversed(cuts):
        out[position:position] = blob
    return bytes(out)


@pytest.mark.parametrize(("cls", "version"), IN_KIO)
@quick
@given(data=st.data())
def test_kio_reads_another_message_than_we_wrote(bodies: Any, cls: type[Message], version: int, data: Any) -> None:
    from kio.serial import entity_reader, entity_writer

    body = data.draw(bodies(cls, version))
    ours = encoded(body, version)
    theirs, size = entity_reader(kio_class(cls, version))(ours, 0)
    assert size == len(ours)
    told = plain(theirs)
    assert same(filled(plain(body), told), told)
    again = io.BytesIO()
    entity_writer(kio_class(cls, version))(again, theirs)
    assert again.getvalue() == ours
    assert decoder(cls, version)(memoryview(again.getvalue()), 0) == (body, len(ours))


RENAMED = {
    "authorized_operations": "authorized_operations",
    "cluster_authorized_operations": "authorized_operations",
    "topic_authorized_operations": "authorized_operations",
}


def bits(value: int) -> set[int] | None:
    """The numbers of the bits set, None for Kafka's "not asked for"."""
    return None if value == -(2**31) else {bit for bit in range(32) if value >> bit & 1}


def kafka_python_object(ours: Struct, theirs: Any, version: int) -> Any:
    """The kafka-python object that says the same as ``ours``."""
    values: dict[str, Any] = {}
    for name, wire in wire_fields(type(ours), version):
        value = getattr(ours, name)
        if isinstance(wire.element, type) and value is not None:
            part = theirs.fields[name].data_class
            if wire.kind == "array":
                value = [kafka_python_object(element, part, version) for element in value]
            else:
                value = kafka_python_object(value, part, version)
        if wire.kind == "uuid":
            value = uuid.UUID(bytes=value)
        if name in RENAMED:
            value = bits(value)
        if wire.tag is None or getattr(ours, name) != default_of(type(ours), name):
            values[RENAMED.get(name, name)] = value
    return theirs(version=version, **values)


@pytest.mark.parametrize(("cls", "version"), IN_KAFKA_PYTHON)
@quick
@given(data=st.data())
def test_kafka_python_writes_other_bytes_than_we_do(bodies: Any, cls: type[Message], version: int, data: Any) -> None:
    body = data.draw(bodies(cls, version))
    assume(not (version and getattr(body, "error_code", 0) and cls is ApiVersionsResponse))  # read as v0, always
    theirs = kafka_python_object(body, kafka_python_class(cls), version)
    theirs.with_header(correlation_id=77, **({"client_id": "probe"} if cls.direction == "request" else {}))
    frame = theirs.encode(header=True)
    if cls.direction == "request":
        header = RequestHeader(cls.api_key, version, 77, "probe")
        assert b"".join(encode_request(header, body)) == frame
        assert decode_request(frame) == (header, body)
    else:
        assert b"".join(encode_response_frame(cls.api_key, version, 77, body)) == frame
        assert decode_response(cls.api_key, version, frame) == (77, body)
    again = kafka_python_class(cls).decode(encoded(body, version), version=version)
    again.with_header(correlation_id=77)  # DeleteTopicsRequest cannot be encoded without
    assert again.encode() == encoded(body, version)


def test_an_oracle_knows_fewer_messages_than_it_should() -> None:
    assert {cls for cls, _ in KIO} >= {cls for (_, key), cls in MESSAGES.items() if key in ADVERTISED}
    assert {cls.api_key for cls, _ in KIO} > {ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT}
    assert len(KAFKA_PYTHON) == 2 * (len(ADVERTISED) - len(_NOT_IN_KAFKA_PYTHON))
