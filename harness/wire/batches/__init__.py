"""Record batches v2: opaque to a broker, which reads and patches their headers, and readable for probes and tests."""

from __future__ import annotations

from harness.wire.batches.header import (
    COMPRESSION,
    CONTROL,
    DELETE_HORIZON,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    Marker,
    complete_size,
    delete_horizon,
    headers,
    patch,
    seal,
    verify,
)
from harness.wire.batches.record import (
    GZIP,
    MAX_INFLATED_BYTES,
    NONE,
    Inflate,
    Record,
    build,
    build_marker,
    emptied,
    rebuilt,
    records,
)
from harness.wire.errors import CorruptBatch

__all__ = [
    "COMPRESSION",
    "CONTROL",
    "DELETE_HORIZON",
    "GZIP",
    "HEADER_BYTES",
    "LOG_APPEND_TIME",
    "MAGIC",
    "MAX_INFLATED_BYTES",
    "NONE",
    "TRANSACTIONAL",
    "BatchHeader",
    "CorruptBatch",
    "Inflate",
    "Marker",
    "Record",
    "build",
    "build_marker",
    "complete_size",
    "delete_horizon",
    "emptied",
    "headers",
    "patch",
    "rebuilt",
    "records",
    "seal",
    "verify",
]
