"""Validates Produce requests: one batch that every consumer can read, or an error code, as in Kafka.

Kafka decides in three places, in this order: ``ProduceRequest.validateRecords`` (one batch of format 2),
``UnifiedLog.analyzeAndValidateRecords`` (size, checksum) and ``LogValidator`` (what is in it). All records are parsed,
those of a compressed batch, too; ``UNKNOWN_SERVER_ERROR`` is what Kafka makes of exceptions that it does not expect. In
one point this is stricter than Kafka 4.1, which takes a compressed record that claims to be longer than its batch.

Kafka parses on many threads, and we on one: a request may have no more than ``MAX_RECORDS``, and its batches may
inflate to no more than ``MAX_INFLATED_BYTES``. Beyond that its batches are too large.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from harness.broker.codecs import LZ4, ZSTD, inflate
from harness.error_codes import ErrorCode
from harness.wire import batches as wire
from harness.wire.batches import MAX_INFLATED_BYTES, BatchHeader
from harness.wire.errors import CorruptBatch

MAX_RECORDS = 200_000
"""Of all batches in one request: parsing as many takes about half a second."""

_ZSTD_SINCE = 7
_SMALLEST_ENTRY_BYTES = 14
_UP_TO_MAGIC = struct.Struct(">qiib")
_LENGTH_COUNTS_FROM = 12
_ATTRIBUTES_AT = 21
_CODECS = 5
_LZ4_FLAGS_AT, _LZ4_INDEPENDENT = 4, 0b10_0000
_VARINT_BYTES, _VARLONG_BYTES = 5, 10


class Refused(Exception):
    """A batch that is not appended.

    Attributes:
        error: the code of the protocol.
    """

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


class _EndlessVarint(Exception):
    """A varint has more bytes than its type may have."""


class Sound(NamedTuple):
    """A batch that may be appended: its bytes, without what followed it, and its header."""

    buffer: memoryview
    header: BatchHeader


class Validation:
    """The batches of one Produce request.

    Args:
        version: of the request.
        max_bytes: ``message.max.bytes``.
        may_transact: whether a batch may be a part of a transaction, because the request names one.
    """

    def __init__(self, version: int, max_bytes: int, *, may_transact: bool = False) -> None:
        self._may_transact = may_transact
        self._version = version
        self._max_bytes = max_bytes
        self._records = MAX_RECORDS
        self._inflated_bytes = MAX_INFLATED_BYTES

    def check(self, buffer: memoryview, max_bytes: int | None = None) -> Sound:
        """The one batch that a client may send for a partition.

        Args:
            buffer: the records of the request for the partition.
            max_bytes: ``max.message.bytes`` of its topic; None: as in other topics.

        Raises:
            Refused: it is none.
        """
        batch = buffer[: _only_batch(buffer)]
        codec = batch[_ATTRIBUTES_AT + 1] & wire.COMPRESSION
        if codec == ZSTD and self._version < _ZSTD_SINCE:
            raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if len(batch) > (self._max_bytes if max_bytes is None else max_bytes):
            raise Refused(ErrorCode.MESSAGE_TOO_LARGE)
        header = _header(batch)
        if not wire.verify(batch, header):
            raise Refused(ErrorCode.CORRUPT_MESSAGE)
        _check_header(header, may_transact=self._may_transact)
        self._check_records(header, self._plain(batch, header, codec), codec)
        return Sound(batch, header)

    def _plain(self, batch: memoryview, header: BatchHeader, codec: int) -> bytes:
        """The records, inflated."""
        if header.record_count > self._records:
            raise Refused(ErrorCode.MESSAGE_TOO_LARGE)
        self._records -= header.record_count
        data = batch[wire.HEADER_BYTES :]
        if not codec:
            return bytes(data)
        if codec >= _CODECS or not _is_independent(data, codec):
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            plain = inflate(data, codec, header.magic)
        except CorruptBatch as error:
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        self._inflated_bytes -= len(plain)
        if self._inflated_bytes < 0:
            raise Refused(ErrorCode.MESSAGE_TOO_LARGE)
        return bytes(plain)

    def _check_records(self, header: BatchHeader, plain: bytes, codec: int) -> None:
        try:
            dense = _check_records(plain, header.record_count)
        except IndexError:
            raise Refused(ErrorCode.INVALID_RECORD) from None
        except _EndlessVarint:  # Kafka expects it where it skips through what was compressed
            raise Refused(ErrorCode.INVALID_RECORD if codec else ErrorCode.UNKNOWN_SERVER_ERROR) from None
        if codec and not dense:  # Kafka would write the batch anew, and fails at it
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)


def _only_batch(buffer: memoryview) -> int:
    """The size of the only whole batch; what is torn behind it is not looked at.

    Raises:
        Refused: there is none, there are two, or it is of an older format.
    """
    size = _whole(buffer)
    if not size or buffer[_UP_TO_MAGIC.size - 1] != wire.MAGIC or _whole(buffer[size:]):
        raise Refused(ErrorCode.INVALID_RECORD)
    if size < wire.HEADER_BYTES:
        raise Refused(ErrorCode.CORRUPT_MESSAGE)
    return size


def _whole(buffer: memoryview) -> int:
    """The size of the batch that begins the buffer, as ``ByteBufferLogInputStream`` finds it; 0: it is torn."""
    if len(buffer) < _UP_TO_MAGIC.size:
        return 0
    _, length, _, magic = _UP_TO_MAGIC.unpack_from(buffer)
    if length < _SMALLEST_ENTRY_BYTES:
        raise Refused(ErrorCode.CORRUPT_MESSAGE)
    if length > len(buffer) - _LENGTH_COUNTS_FROM:
        return 0
    if not 0 <= magic <= wire.MAGIC:
        raise Refused(ErrorCode.CORRUPT_MESSAGE)
    return int(length) + _LENGTH_COUNTS_FROM


def _header(batch: memoryview) -> BatchHeader:
    try:
        (header,) = wire.headers(batch)
    except CorruptBatch as error:  # a negative count, last offset delta or base offset
        raise Refused(ErrorCode.INVALID_RECORD) from error
    return header


def _check_header(header: BatchHeader, *, may_transact: bool) -> None:
    """What Kafka asks of a header whose checksum is right."""
    is_dense = 0 < header.record_count == header.end_offset - header.base_offset
    is_unsequenced = header.producer_id >= 0 and header.base_sequence < 0
    if header.base_offset or not is_dense or is_unsequenced:
        raise Refused(ErrorCode.INVALID_RECORD)
    if header.attributes & wire.TRANSACTIONAL and not may_transact:
        raise Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if header.attributes & wire.CONTROL:
        raise Refused(ErrorCode.INVALID_RECORD)


def _is_independent(data: memoryview, codec: int) -> bool:
    """Whether each block of an lz4 frame can be read without the one before, which Kafka's reader needs."""
    return codec != LZ4 or (len(data) > _LZ4_FLAGS_AT and bool(data[_LZ4_FLAGS_AT] & _LZ4_INDEPENDENT))


def _check_records(data: bytes, count: int) -> bool:
    """Parse ``count`` records, which are all of ``data``; returns whether their offset deltas are 0, 1, 2 ...

    Raises:
        Refused: they do not parse, or are more or fewer.
        IndexError: they reach beyond the end.
        _EndlessVarint: see there.
    """
    position, end, dense = 0, len(data), True
    for index in range(count):
        size = data[position]
        position += 1
        if size > 127:
            size, position = _rest(data, position, size, _VARINT_BYTES)
        stop = position + (size >> 1)
        if size & 1 or stop > end:
            raise Refused(ErrorCode.INVALID_RECORD)
        delta, position = _check_record(data, position + 1, stop)
        dense = dense and delta == 2 * index
    if position != end:
        raise Refused(ErrorCode.INVALID_RECORD)
    return dense


def _check_record(data: bytes, position: int, stop: int) -> tuple[int, int]:
    """Parse one record from its timestamp delta to ``stop``, where it must end.

    Returns:
        Its offset delta as it is encoded, zigzag, and ``stop``.
    """
    timestamp = data[position]
    position += 1
    if timestamp > 127:
        _, position = _rest(data, position, timestamp, _VARLONG_BYTES)
    delta = data[position]
    position += 1
    if delta > 127:
        delta, position = _rest(data, position, delta, _VARINT_BYTES)
    position = _skip_blob(data, _skip_blob(data, position))
    headers = data[position]
    position += 1
    if headers:
        position = _skip_headers(data, position, headers)
    if position != stop:
        raise Refused(ErrorCode.INVALID_RECORD)
    return delta, stop


def _skip_headers(data: bytes, position: int, count: int) -> int:
    if count > 127:
        count, position = _rest(data, position, count, _VARINT_BYTES)
    if count & 1:
        raise Refused(ErrorCode.INVALID_RECORD)
    for _ in range(count >> 1):
        if data[position] & 1:  # the length of the name is negative
            raise Refused(ErrorCode.INVALID_RECORD)
        position = _skip_blob(data, _skip_blob(data, position))
    return position


def _skip_blob(data: bytes, position: int) -> int:
    """Skip a key, a value or a part of a header; a negative length is null."""
    size = data[position]
    position += 1
    if size > 127:
        size, position = _rest(data, position, size, _VARINT_BYTES)
    return position if size & 1 else position + (size >> 1)


def _rest(data: bytes, position: int, first: int, most_bytes: int) -> tuple[int, int]:
    """The varint whose ``first`` byte, of more than one, is already read, zigzag; and the position behind it."""
    value = first & 127
    for shift in range(7, 7 * most_bytes, 7):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise _EndlessVarint
