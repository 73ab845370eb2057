"""The keys and values of the records of a coordinator's log: a version, and a message of Kafka's in that version."""

from __future__ import annotations

import struct
from typing import TypeVar

from harness.wire.declaration import Message
from harness.wire.decoding import decoder
from harness.wire.encoding import encoder
from harness.wire.errors import WireError

_VERSION = struct.Struct(">h")
_MALFORMED = (struct.error, IndexError, UnicodeDecodeError)

Kind = TypeVar("Kind", bound=Message)


def encoded(message: Message, version: int) -> bytes:
    """The bytes of ``message`` in this version."""
    out = bytearray(_VERSION.pack(version))
    encoder(type(message), version)(message, out, [])
    return bytes(out)


def value_of(cls: type[Kind], data: bytes) -> Kind:
    """The value that ``data`` is.

    Raises:
        WireError: it is none of this class, or of a version that is not known.
    """
    version = version_of(data)
    if not cls.versions[0] <= version <= cls.versions[1]:
        raise WireError(f"a {cls.__name__} of version {version}")
    return body_of(cls, version, data)


def version_of(data: bytes) -> int:
    """The version with which a key or a value begins.

    Raises:
        WireError: it is too short for one.
    """
    if len(data) < _VERSION.size:
        raise WireError(f"a key or value of {len(data)} bytes")
    return int(_VERSION.unpack_from(data)[0])


def body_of(cls: type[Kind], version: int, data: bytes) -> Kind:
    """What follows the version.

    Raises:
        WireError: it is malformed.
    """
    view = memoryview(data)
    try:
        message, position = decoder(cls, version)(view, _VERSION.size)
    except _MALFORMED as error:
        raise WireError(f"a {cls.__name__} is malformed: {error}") from error
    if position != len(view):
        raise WireError(f"a {cls.__name__} of {position} bytes in {len(view)}")
    assert isinstance(message, cls)
    return message
