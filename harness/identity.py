"""Encodes a unique id in each input record of a user's program, and finds it again in the program's output.

A record of the input has the key of its value, JSON as its content, and a header, :data:`MARK`, with a hash of all of
it. In the JSON, under ``id``, is an *identity*: a text that no other record of the run has, ``sw-<value>-<crc32>``,
which stays what it is in whatever a program makes of the record. Several records have one key.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence
from typing import Any

from harness.model import TopicPartition
from harness.payload import INPUT_MARK, ProducerRecord, input_mark

KEYS = 1 << 16
"""Exclusive: the number of a key is below; a value is congruent to the number of its key."""

HEADER = "header:"
"""How the name of a header begins, where an identity is looked for in one."""

_IDENTITY = re.compile(rb"sw-(\d{1,18})-([0-9a-f]{8})")
_FILLER = "filler"


def key_of(value: int) -> bytes:
    """The key of the record of ``value``."""
    return b"key-%d" % (value % KEYS)


def identity_of(value: int) -> str:
    """The identity of the record of ``value``."""
    digits = b"%d" % value
    return f"sw-{value}-{zlib.crc32(digits):08x}"


def input_record(value: int, place: TopicPartition, size: int, timestamp_ms: int) -> ProducerRecord:
    """The record of ``value`` for ``place``; its JSON is filled up to ``size`` bytes where it would be shorter."""
    key = key_of(value)
    fields = {"id": identity_of(value), "key": key.decode()}
    content = json.dumps(fields).encode()
    if len(content) < size:
        missing = size - len(json.dumps({**fields, _FILLER: ""}))
        content = json.dumps({**fields, _FILLER: "." * max(0, missing)}).encode()
    headers = ((INPUT_MARK, input_mark(value, place, key, content)),)
    return ProducerRecord(key, content, headers, timestamp_ms)


def identities(data: bytes | None) -> list[int]:
    """The values of the records whose identities are somewhere in ``data``, each once, in order."""
    found = {int(digits): None for digits, crc in _IDENTITY.findall(data or b"") if b"%08x" % zlib.crc32(digits) == crc}
    return list(found)


def held(
    content: bytes | None, key: bytes | None = None, headers: Sequence[tuple[str, bytes | None]] = (), at: str = ""
) -> list[int]:
    """The values of the records that a record of the output holds; empty: it holds none.

    Args:
        content: its value, or its line.
        key: its key.
        headers: its headers.
        at: where its identity is: a JSON pointer (``/order/id``, RFC 6901) into the content, ``header:NAME``, or empty
            for anywhere: in the content, or else in the key, or else in a header.
    """
    if at.startswith(HEADER):
        wanted = at.removeprefix(HEADER)
        return _any(text for name, text in headers if name == wanted)
    if at:
        return identities(pointed_at(content, at))
    return identities(content) or identities(key) or _any(text for name, text in headers if name != INPUT_MARK)


def pointed_at(content: bytes | None, pointer: str) -> bytes | None:
    """The text, or the JSON, to which a JSON pointer leads in ``content``; None: there is none."""
    try:
        found: Any = json.loads(content or b"")
        for step in pointer.removeprefix("/").split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            found = found[int(name)] if isinstance(found, list) else found[name]
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return (found if isinstance(found, str) else json.dumps(found)).encode()


def _any(texts: Any) -> list[int]:
    return list(dict.fromkeys(value for text in texts for value in identities(text)))
