"""What Tansu does and Kafka does not, by a few calls of librdkafka, nothing of seawall: ``by_hand.py HOST:PORT``."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

TIMEOUT_S = 30.0


def given_of_an_aborted_transaction(bootstrap: str) -> Sequence[str]:
    """What a consumer of committed records is given of three that were aborted and two that were committed behind."""
    topic = f"by-hand-{uuid.uuid4().hex[:8]}"
    administration = AdminClient({"bootstrap.servers": bootstrap})
    administration.create_topics([NewTopic(topic, 1, 1)])[topic].result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(TIMEOUT_S)
    for values, end in (
        (("aborted 0", "aborted 1", "aborted 2"), producer.abort_transaction),
        (("committed 0", "committed 1"), producer.commit_transaction),
    ):
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value)
        producer.flush(TIMEOUT_S)
        end(TIMEOUT_S)
    return committed(bootstrap, topic)


def committed(bootstrap: str, topic: str) -> Sequence[str]:
    """The records of partition 0, by ``read_committed``, up to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": topic,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    given: list[str] = []
    try:
        while (message := consumer.poll(TIMEOUT_S)) is not None:
            if (error := message.error()) is None:
                value = message.value()
                assert value is not None
                given.append(value.decode())
            elif error.code() == KafkaError._PARTITION_EOF:
                return given
            else:
                raise SystemExit(f"The broker answers {error}.")
    finally:
        consumer.close()
    raise SystemExit(f"The broker has not answered for {TIMEOUT_S:g} s.")


if __name__ == "__main__":
    sys.stdout.write(f"{list(given_of_an_aborted_transaction(sys.argv[1]))}\n")
