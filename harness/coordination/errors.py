"""The error codes that a coordinator answers with (names as in Kafka's ``Errors``)."""

from __future__ import annotations

from enum import IntEnum

_TOO_FEW_REPLICAS = (3, 19, 20)
"""UNKNOWN_TOPIC_OR_PARTITION, NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND."""
_NOT_HERE = (6, 56)
"""NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR."""
_TOO_LARGE = (10, 18)
"""MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE."""
_TIMED_OUT = 7
_NOT_ENOUGH_AFTER_APPEND = 20


class GroupError(IntEnum):
    """Of requests about groups and their offsets."""

    NONE = 0
    UNKNOWN_SERVER_ERROR = -1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    UNSTABLE_OFFSET_COMMIT = 88
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    INVALID_REGULAR_EXPRESSION = 128


class TransactionError(IntEnum):
    """Of requests about transactions."""

    NONE = 0
    UNKNOWN_SERVER_ERROR = -1
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_REQUEST = 42
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    OPERATION_NOT_ATTEMPTED = 55
    PRODUCER_FENCED = 90
    TRANSACTIONAL_ID_NOT_FOUND = 105
    TRANSACTION_ABORTABLE = 120


def of_transaction(code: int) -> int:
    """What a producer is answered whose transaction could not be stored, for the ``code`` of the append."""
    if code in _TOO_FEW_REPLICAS or code == _TIMED_OUT:
        return TransactionError.COORDINATOR_NOT_AVAILABLE
    if code in _NOT_HERE:
        return TransactionError.NOT_COORDINATOR
    return TransactionError.UNKNOWN_SERVER_ERROR if code else TransactionError.NONE


def of_group(code: int) -> int:
    """What a member is answered whose generation could not be stored, for the ``code`` of the append."""
    if code in _TOO_FEW_REPLICAS:
        return GroupError.COORDINATOR_NOT_AVAILABLE
    if code in _NOT_HERE:
        return GroupError.NOT_COORDINATOR
    return GroupError.REBALANCE_IN_PROGRESS if code == _TIMED_OUT else GroupError.UNKNOWN_SERVER_ERROR


def of_heartbeat(code: int) -> GroupError:
    """What a member is answered whose step (KIP-848) could not be stored, for the ``code`` of the append."""
    if code in _TOO_FEW_REPLICAS or code == _TIMED_OUT:
        return GroupError.COORDINATOR_NOT_AVAILABLE
    return GroupError.NOT_COORDINATOR if code in _NOT_HERE else GroupError.UNKNOWN_SERVER_ERROR


def is_in_log(code: int) -> bool:
    """Whether the leader has appended the records, for the ``code`` of the append, though others may not have them."""
    return code in (GroupError.NONE, _TIMED_OUT, _NOT_ENOUGH_AFTER_APPEND)


def of_commit(code: int) -> int:
    """What a consumer is answered whose offsets could not be stored, for the ``code`` of the append."""
    if code in _TOO_FEW_REPLICAS:
        return GroupError.COORDINATOR_NOT_AVAILABLE
    if code in _NOT_HERE:
        return GroupError.NOT_COORDINATOR
    return GroupError.INVALID_COMMIT_OFFSET_SIZE if code in _TOO_LARGE else code
