"""A processor that promises exactly once: what it puts out and what it commits are one transaction.

SIGALRM ends it where its offsets are not taken within five seconds, and it is started again: librdkafka 2.16 waits for
ever, whatever time it is given, for a group coordinator that has died and is in no metadata any more (its issues 5511
and 5456).
"""

import json
import os
import signal
import threading

from confluent_kafka import Consumer, Producer

ended = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: ended.set())
bootstrap = {"bootstrap.servers": os.environ["SEAWALL_BOOTSTRAP"]}
consumer = Consumer({
    **bootstrap,
    "group.id": os.environ["SEAWALL_GROUP"],
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "session.timeout.ms": 6000,
})  # fmt: skip
producer = Producer({
    **bootstrap,
    "transactional.id": f"processor-{os.environ['SEAWALL_COPY']}",
    "transaction.timeout.ms": 5000,
})  # fmt: skip
producer.init_transactions()
consumer.subscribe(os.environ["SEAWALL_INPUT"].split(","))
while not ended.is_set():
    read = [message for message in consumer.consume(100, 0.2) if message.error() is None]
    if read:
        producer.begin_transaction()
        for message in read:
            done = json.dumps({"processed": json.loads(message.value() or b"")["id"]})
            producer.produce(os.environ["SEAWALL_OUTPUT"], done, message.key())
        signal.alarm(5)
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        )
        signal.alarm(0)
        producer.commit_transaction()
consumer.close()
