"""What operators ask about transactions: DescribeProducers, DescribeTransactions, ListTransactions (KIP-664)."""

from __future__ import annotations

from harness.model import NO_OFFSET
from harness.wire.declaration import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int32s,
    int64,
    int64s,
    request,
    response,
    sentence,
    string,
    strings,
    struct,
)
from harness.wire.keys import ApiKey


@struct
class DescribeProducersTopicRequest(Struct):
    """The partitions of one topic."""

    name: str = string()
    partition_indexes: list[int] = int32s()


@request(ApiKey.DESCRIBE_PRODUCERS, versions=(0, 0), flexible=0)
class DescribeProducersRequest(Message):
    """Asks leaders for the producers that their partitions know."""

    topics: list[DescribeProducersTopicRequest] = array(DescribeProducersTopicRequest)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return DescribeProducersResponse(
            topics=[
                DescribeProducersTopicResponse(
                    topic.name, [DescribedProducers(index, error) for index in topic.partition_indexes]
                )
                for topic in self.topics
            ]
        )


@struct
class ProducerState(Struct):
    """A producer in one partition; ``last_timestamp`` in milliseconds since the Unix epoch, -1 for what is unknown."""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=NO_OFFSET)


@struct
class DescribedProducers(Struct):
    """The producers of one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = sentence()
    active_producers: list[ProducerState] = array(ProducerState)


@struct
class DescribeProducersTopicResponse(Struct):
    """The producers of one topic."""

    name: str = string()
    partitions: list[DescribedProducers] = array(DescribedProducers)


@response(ApiKey.DESCRIBE_PRODUCERS, versions=(0, 0), flexible=0)
class DescribeProducersResponse(Message):
    """The producers of every partition."""

    throttle_time_ms: int = int32()
    topics: list[DescribeProducersTopicResponse] = array(DescribeProducersTopicResponse)


@request(ApiKey.DESCRIBE_TRANSACTIONS, versions=(0, 0), flexible=0)
class DescribeTransactionsRequest(Message):
    """Asks for the transactions of these transactional ids."""

    transactional_ids: list[str] = strings()

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return DescribeTransactionsResponse(
            transaction_states=[DescribedTransaction(error, one) for one in self.transactional_ids]
        )


@struct
class TransactionTopic(Struct):
    """The partitions of one topic in a transaction."""

    topic: str = string()
    partitions: list[int] = int32s()


@struct
class DescribedTransaction(Struct):
    """The transaction of one transactional id; times in milliseconds, -1 where none has begun."""

    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[TransactionTopic] = array(TransactionTopic)


@response(ApiKey.DESCRIBE_TRANSACTIONS, versions=(0, 0), flexible=0)
class DescribeTransactionsResponse(Message):
    """The transactions."""

    throttle_time_ms: int = int32()
    transaction_states: list[DescribedTransaction] = array(DescribedTransaction)


@request(ApiKey.LIST_TRANSACTIONS, versions=(0, 1), flexible=0)
class ListTransactionsRequest(Message):
    """Asks for the transactions of a coordinator, empty filters meaning all; ``duration_filter`` in milliseconds."""

    state_filters: list[str] = strings()
    producer_id_filters: list[int] = int64s()
    duration_filter: int = int64(since=1, default=-1)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return ListTransactionsResponse(error_code=error)


@struct
class ListedTransaction(Struct):
    """The state of one transactional id."""

    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@response(ApiKey.LIST_TRANSACTIONS, versions=(0, 1), flexible=0)
class ListTransactionsResponse(Message):
    """The transactions of this coordinator."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = strings()
    transaction_states: list[ListedTransaction] = array(ListedTransaction)
