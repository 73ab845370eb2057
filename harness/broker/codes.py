"""The error codes that request handlers choose.

Those that replication chooses are ``error_codes.ErrorCode``, and those about groups ``harness.coordination.errors``.
"""

from __future__ import annotations

from enum import IntEnum

from harness.coordination.errors import GroupError
from harness.replication.error_codes import ErrorCode


class FrontError(IntEnum):
    """Names as in Kafka's ``Errors``."""

    UNKNOWN_SERVER_ERROR = -1
    CORRUPT_MESSAGE = 2
    MESSAGE_TOO_LARGE = 10
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_VERSION = 35
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    FETCH_SESSION_ID_NOT_FOUND = 70
    UNSUPPORTED_COMPRESSION_TYPE = 76
    OFFSET_NOT_AVAILABLE = 78
    INVALID_RECORD = 87
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_CLUSTER_ID = 104


def replication_error(code: int) -> ErrorCode:
    """The core's error for a code off the wire; one it does not know is treated like silence.

    Silence is the safe reading of nonsense: it leaves open whether the request took effect.
    """
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.REQUEST_TIMED_OUT


def name_of(code: int) -> str:
    """The name of an error code, for the operator."""
    for known in (ErrorCode, FrontError, GroupError):
        if code in known.__members__.values():
            return known(code).name
    return f"error {code}"
