"""Error codes off the wire: what the core understands of them, and their names."""

from __future__ import annotations

from harness.error_codes import ErrorCode

_OF_REPLICATION = frozenset(
    {
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NONE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.STALE_CONTROLLER_EPOCH,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Those that replicas and the controller answer each other with."""


def replication_error(code: int) -> ErrorCode:
    """The core's error for a code off the wire; one it does not know is treated like silence.

    Silence is the safe reading of nonsense: it leaves open whether the request took effect.
    """
    return ErrorCode(code) if code in _OF_REPLICATION else ErrorCode.REQUEST_TIMED_OUT


def name_of(code: int) -> str:
    """The name of an error code, for the operator."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
