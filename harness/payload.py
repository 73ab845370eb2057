"""Encodes and verifies a workload's records: a unique value, from which all other parts are derived.

The text of a record is ``seawall <topic> <partition> <value> <timestamp> <headers> <filler> <crc32>``, so a person can
read it in any tool. The hash covers all of it: the partition the record was sent to, the CreateTime that its client
chose, and the number of its headers. Key and headers follow from the value. A record that a client polls, or that lies
on a broker's disk, therefore shows which write it is, and whether any part of it is not what was sent.

A record of a client of the user's own has any content; a header, :data:`MARK`, has its unique value and the hash. One
that a user's program is to process has :data:`INPUT_MARK` instead, with the topic: a program may copy the headers of
what it reads to another topic, where they say nothing of its records.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from harness.model import TopicPartition

FOREIGN_VALUE = 2**62
"""The value of the first record of a foreign batch; the others count on from it. No workload reaches it."""

Headers = Sequence[tuple[str, bytes | None]]

MARK = "seawall"
"""The name of the header of a marked record: ``<value> <crc32>``."""

INPUT_MARK = "seawall-input"
"""The name of the header of a record that a user's program is to process: ``<value> <crc32> <topic>``."""

_MAGIC = b"seawall "
_UNSAID = b"-"
_MOST_DIGITS = 18
"""Of a marked record's value."""
_CRC_DIGITS = 8
_SPACES = 7
"""The separator in a text; the filler has none."""


class Carried(NamedTuple):
    """Which fields a client sends, and a cluster stores so, besides key and value, which every message format has.

    Attributes:
        headers: False where records are stored in message format v0 or v1, which have none (before Kafka 0.11).
        timestamp: False in message format v0, which has none (before 0.10), and in topics with LogAppendTime, where the
            leader replaces it.
        null_headers: False where the client library takes no header without content.
    """

    headers: bool = True
    timestamp: bool = True
    null_headers: bool = True


EVERYTHING = Carried()
"""What a cluster with record batches (message format v2) stores, unless its topics have LogAppendTime."""


class ProducerRecord(NamedTuple):
    """A record as a client sends it; ``timestamp_ms`` is its CreateTime, in milliseconds since the Unix epoch.

    ``value`` is None in a tombstone, which only a topic with a compacted log has.
    """

    key: bytes
    value: bytes | None
    headers: Headers
    timestamp_ms: int


class StoredRecord(NamedTuple):
    """A record as read by a client or from a disk.

    ``create_time_ms`` is None where the record has no timestamp, or has LogAppendTime.
    """

    key: bytes | None
    value: bytes | None
    headers: Headers
    create_time_ms: int | None


class Payload(NamedTuple):
    """A decoded text.

    Attributes:
        create_time_ms: the timestamp that the record was sent with; None where the cluster does not keep it.
        headers: the headers that it was sent with.
        intact: whether the hash is right.
    """

    value: int
    topic: str
    partition: int
    create_time_ms: int | None
    headers: Headers
    intact: bool


def encode(
    value: int, topic: str, partition: int, size: int = 0, *, timestamp_ms: int, carried: Carried = EVERYTHING
) -> ProducerRecord:
    """The record of ``value``; its text is filled up to ``size`` bytes where it would be shorter."""
    return encode_all(TopicPartition(topic, partition), [value], [size], [timestamp_ms], carried)[0]


def encode_all(
    place: TopicPartition, values: Sequence[int], sizes: Sequence[int], timestamps_ms: Sequence[int], carried: Carried
) -> list[ProducerRecord]:
    """The records of ``values`` for one partition, a size and a CreateTime for each; see :func:`encode`."""
    begin, records = _begin(*place), []
    for value, size, at in zip(values, sizes, timestamps_ms, strict=True):
        key = key_of(value)
        headers = _headers_by(key)[: carried.headers * (1 + carried.null_headers)]
        timestamp = b"%d" % at if carried.timestamp else _UNSAID
        head = b"%s%s %s %d " % (begin, key, timestamp, len(headers))
        body = head + b"." * (size - len(head) - 9) + b" "
        records.append(ProducerRecord(key, body + _crc(body), headers, at))
    return records


@cache
def _begin(topic: str, partition: int) -> bytes:
    """How the text of every record for a partition begins."""
    return b"%s%s %d " % (_MAGIC, topic.encode(), partition)


def _crc(body: bytes) -> bytes:
    return b"%08x" % zlib.crc32(body)


def key_of(value: int) -> bytes:
    """The key of the record of ``value``."""
    return b"%d" % value


def headers_of(value: int) -> Headers:
    """The headers of the record of ``value``: one with content, and one whose content is null."""
    return _headers_by(key_of(value))


def _headers_by(key: bytes) -> Headers:
    return (("value", key), ("null", None))


def decode(data: bytes | bytearray | memoryview | None) -> Payload | None:
    """What the text of a record holds; None when it is not a workload's record at all."""
    text = bytes(data or b"")
    if not text.startswith(_MAGIC):
        return None
    fields = text.split(b" ")
    if len(fields) != _SPACES + 1:
        return None
    try:
        partition, value, headers = int(fields[2]), int(fields[3]), int(fields[5])
        timestamp_ms = None if fields[4] == _UNSAID else int(fields[4])
    except ValueError:
        return None
    sent = headers_of(value)[:headers]
    return Payload(
        value, fields[1].decode(errors="replace"), partition, timestamp_ms, sent, text[-8:] == _crc(text[:-8])
    )


def judge(found: StoredRecord, place: TopicPartition) -> tuple[int | None, bool]:
    """The value of a record found in partition ``place``, and whether every part of it is what was sent there.

    The value is None when the record is none of a workload's.
    """
    if _is_plainly_sent(found, place):
        return int(found.key or 0), True
    sent = decode(found.value)
    if sent is None:
        return _judge_marked(found, place)
    intact = (
        sent.intact
        and (sent.topic, sent.partition) == place
        and found.key == key_of(sent.value)
        and tuple(found.headers) == sent.headers
        and sent.create_time_ms in (None, found.create_time_ms)
    )
    return sent.value, intact


def _is_plainly_sent(found: StoredRecord, place: TopicPartition) -> bool:
    """Whether a record is, byte for byte, the one of its key's value that was sent to ``place``.

    Almost every record is, and :func:`decode` takes twice as long to say so.
    """
    key, text, headers, created = found
    if not key or not key.isdigit() or not text or created is None:
        return False
    begin = b"%s%s %d %d " % (_begin(*place), key, created, len(headers))
    return (
        text.startswith(begin)
        and text.endswith(b" " + _crc(text[:-_CRC_DIGITS]))
        and text.count(b" ") == _SPACES
        and tuple(headers) == _headers_by(key)[: len(headers)]
        and key == key_of(int(key))
    )


def mark(value: int, place: TopicPartition, key: bytes | None, content: bytes | None, headers: Headers) -> bytes:
    """The content of the header :data:`MARK` of a record with any content that is sent to ``place``.

    Its hash covers all parts of the record but the timestamp. Null and empty are not told apart.
    """
    others = [(name, text or b"") for name, text in headers]
    covered = (place.topic, place.partition, value, key or b"", content or b"", others)
    return b"%d %s" % (value, _crc(repr(covered).encode()))


def input_mark(value: int, place: TopicPartition, key: bytes | None, content: bytes | None) -> bytes:
    """The content of the header :data:`INPUT_MARK`, the only one, of a record that is sent to ``place``."""
    return b"%s %s" % (mark(value, place, key, content, ()), place.topic.encode())


def is_marked(headers: Headers) -> bool:
    """Whether a record with these headers is marked."""
    return any(name == MARK for name, _ in headers)


def _judge_marked(found: StoredRecord, place: TopicPartition) -> tuple[int | None, bool]:
    """As :func:`judge` of a record that may be marked."""
    given = [text or b"" for name, text in found.headers if name == INPUT_MARK]
    if given and given[0].split(b" ")[2:] == [place.topic.encode()]:
        return _judge_input(found, place, given[0])
    marks = [text for name, text in found.headers if name == MARK]
    digits = (marks[0] or b"").partition(b" ")[0] if len(marks) == 1 else b""
    if not digits.isdigit() or len(digits) > _MOST_DIGITS:
        return None, False
    value, others = int(digits), [header for header in found.headers if header[0] != MARK]
    return value, marks[0] == mark(value, place, found.key, found.value, others)


def _judge_input(found: StoredRecord, place: TopicPartition, given: bytes) -> tuple[int | None, bool]:
    """As :func:`judge` of a record that a user's program is to process, whose mark is ``given``."""
    digits = given.partition(b" ")[0]
    if not digits.isdigit() or len(digits) > _MOST_DIGITS:
        return None, False
    value = int(digits)
    return value, len(found.headers) == 1 and given == input_mark(value, place, found.key, found.value)
