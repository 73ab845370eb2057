"""A consumer that prints, writes or posts what it has read, as its first argument says, and commits it then."""

import json
import os
import signal
import sys
import threading
import urllib.request

from confluent_kafka import Consumer

ended = threading.Event()


def prints(lines: list[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def leaves_out(lines: list[str]) -> None:
    """Print all but the first of several."""
    prints(lines[1:] or lines)


def prints_twice(lines: list[str]) -> None:
    """Print the first once more."""
    prints([*lines, lines[0]])


def writes(lines: list[str]) -> None:
    with open(os.environ["SEAWALL_SINK"], "a") as file:
        file.write("".join(f"{line}\n" for line in lines))


def posts(lines: list[str]) -> None:
    request = urllib.request.Request(os.environ["SEAWALL_SINK"], "\n".join(lines).encode(), method="POST")
    urllib.request.urlopen(request).close()


signal.signal(signal.SIGTERM, lambda *_: ended.set())
consumer = Consumer(
    {
        "bootstrap.servers": os.environ["SEAWALL_BOOTSTRAP"],
        "group.id": os.environ["SEAWALL_GROUP"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 1000,
        "heartbeat.interval.ms": 200,
    }
)
consumer.subscribe(os.environ["SEAWALL_INPUT"].split(","))
put = globals()[sys.argv[1]]
while not ended.is_set():
    read = [message for message in consumer.consume(20, 0.2) if message.error() is None]
    if read:
        put([json.dumps({"row": json.loads(message.value() or b"")["id"]}) for message in read])
        consumer.commit(asynchronous=False)
consumer.close()
