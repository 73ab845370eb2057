"""What a coordinator answers a client whose records it could not store in its topic, by the error of the append."""

from __future__ import annotations

from harness.error_codes import ErrorCode

_TOO_FEW_REPLICAS = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)  # fmt: skip
_NOT_HERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR)
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


def of_transaction(code: int) -> int:
    """What a producer is answered whose transaction could not be stored, for the ``code`` of the append."""
    if code in _TOO_FEW_REPLICAS or code == ErrorCode.REQUEST_TIMED_OUT:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code in _NOT_HERE:
        return ErrorCode.NOT_COORDINATOR
    return ErrorCode.UNKNOWN_SERVER_ERROR if code else ErrorCode.NONE


def of_group(code: int) -> int:
    """What a member is answered whose generation could not be stored, for the ``code`` of the append."""
    if code in _TOO_FEW_REPLICAS:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code in _NOT_HERE:
        return ErrorCode.NOT_COORDINATOR
    return ErrorCode.REBALANCE_IN_PROGRESS if code == ErrorCode.REQUEST_TIMED_OUT else ErrorCode.UNKNOWN_SERVER_ERROR


def of_heartbeat(code: int) -> ErrorCode:
    """What a member is answered whose step (KIP-848) could not be stored, for the ``code`` of the append."""
    if code in _TOO_FEW_REPLICAS or code == ErrorCode.REQUEST_TIMED_OUT:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.NOT_COORDINATOR if code in _NOT_HERE else ErrorCode.UNKNOWN_SERVER_ERROR


def is_in_log(code: int) -> bool:
    """Whether the leader has appended the records, for the ``code`` of the append, though others may not have them."""
    return code in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


def of_commit(code: int) -> int:
    """What a consumer is answered whose offsets could not be stored, for the ``code`` of the append."""
    if code in _TOO_FEW_REPLICAS:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code in _NOT_HERE:
        return ErrorCode.NOT_COORDINATOR
    return ErrorCode.INVALID_COMMIT_OFFSET_SIZE if code in _TOO_LARGE else code
