"""Processors that break a promise, each in the way that its first argument names."""

import json
import os
import random
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from confluent_kafka import Consumer, Message, Producer

PAUSE_S = 0.3

ended = threading.Event()


def work(messages: list[Message]) -> None:
    """Produce the results in order."""
    for message in messages:
        result(message)
    producer.flush()


def result(message: Message) -> None:
    done = json.dumps({"processed": json.loads(message.value() or b"")["id"]})
    producer.produce(os.environ["SEAWALL_OUTPUT"], done, message.key())


def crash() -> None:
    """Die as by ``kill -9``, once in all lives; the file that ``CRASHED`` names tells of it."""
    crashed = Path(os.environ["CRASHED"])
    if not crashed.exists():
        crashed.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def commits_first(messages: list[Message]) -> None:
    """A crash before the results are out leaves records out."""
    consumer.commit(asynchronous=False)
    crash()
    work(messages)


def commits_late(messages: list[Message]) -> None:
    """A crash before the commit has records processed again."""
    work(messages)
    crash()
    consumer.commit(asynchronous=False)


def threads(messages: list[Message]) -> None:
    """Threads take records of one key at the same time."""

    def slowly(message: Message) -> None:
        time.sleep(random.random() * PAUSE_S)
        result(message)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(slowly, messages))
    producer.flush()
    consumer.commit(asynchronous=False)


def makes_up(messages: list[Message]) -> None:
    """A result is of no record."""
    work(messages)
    producer.produce(os.environ["SEAWALL_OUTPUT"], json.dumps({"processed": len(messages)}))
    producer.flush()
    consumer.commit(asynchronous=False)


def dead_letters(messages: list[Message]) -> None:
    """Every tenth record is dropped, and its offset is committed."""
    work([message for message in messages if (message.offset() or 0) % 10])
    consumer.commit(asynchronous=False)


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
process = globals()[sys.argv[1]]
while not ended.is_set():
    read = [message for message in consumer.consume(20, 0.2) if message.error() is None]
    if read:
        process(read)
consumer.close()
