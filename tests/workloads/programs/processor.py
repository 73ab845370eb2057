"""A processor that keeps its promise, at least once: it commits what it has put out, and nothing else."""

import json
import os
import signal
import sys
import threading

from confluent_kafka import Consumer, Producer

ended = threading.Event()
failures: list[object] = []


def answered(error: object, _: object) -> None:
    if error is not None:
        failures.append(error)


signal.signal(signal.SIGTERM, lambda *_: ended.set())
bootstrap = {"bootstrap.servers": os.environ["SEAWALL_BOOTSTRAP"]}
consumer = Consumer(
    {
        **bootstrap,
        "group.id": os.environ["SEAWALL_GROUP"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 1000,
        "heartbeat.interval.ms": 200,
    }
)
producer = Producer({**bootstrap, "enable.idempotence": True})
consumer.subscribe(os.environ["SEAWALL_INPUT"].split(","))
while not ended.is_set():
    read = [message for message in consumer.consume(100, 0.2) if message.error() is None]
    for message in read:
        order = json.loads(message.value() or b"")
        done = json.dumps({"processed": order["id"]})
        producer.produce(os.environ["SEAWALL_OUTPUT"], done, message.key(), on_delivery=answered)
    producer.flush()
    if failures:
        sys.exit(f"not stored: {failures[0]}")
    if read:
        consumer.commit(asynchronous=False)
consumer.close()
