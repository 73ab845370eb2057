"""The configuration that all our librdkafka clients share, and where their log goes."""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, cimpl

from harness.client_properties import Access, ClientProperties
from harness.errors import EnvironmentFault

Configuration = dict[str, Any]

ClientT = TypeVar("ClientT")

_CONNECTIONS: Configuration = {
    "allow.auto.create.topics": False,
    "enable.metrics.push": False,
    "log.connection.close": False,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 250,
    "socket.connection.setup.timeout.ms": 1000,
    "socket.nagle.disable": True,
    "topic.metadata.refresh.interval.ms": 1000,
    "topic.metadata.refresh.fast.interval.ms": 50,
}
"""Impatient: a client that takes seconds to notice a new leader measures itself."""


def configuration(access: Access, client_id: str, log: logging.Logger) -> Configuration:
    """The configuration common to producers and consumers."""
    discreet = _DiscreetLog(log, access.properties)
    return {
        **_CONNECTIONS,
        **access.properties.values,
        "broker.address.family": _family(),
        "bootstrap.servers": access.bootstrap,
        "client.id": client_id,
        "logger": discreet,
        "error_cb": _error_logger(client_id, discreet),
    }


def _family() -> str:
    """IPv4, or ``any`` where the machine has no address but loopback, as a container without a network.

    There the C library resolves no address of IPv4, not even 127.0.0.1, for a program that asks for IPv4 alone and with
    ``AI_ADDRCONFIG``, as librdkafka does.
    """
    try:
        socket.getaddrinfo("127.0.0.1", None, socket.AF_INET, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
    except socket.gaierror:
        return "any"
    return "v4"


class ClientError(Exception):
    """librdkafka has refused a call, or has given the whole client up.

    Attributes:
        error: its reason.
    """

    def __init__(self, error: KafkaError) -> None:
        super().__init__(error.str())
        self.error = error

    @property
    def name(self) -> str:
        """The error's name."""
        return str(self.error.name())


CLOSES_WITHIN_S = 30.0
"""How long a client may take to close."""

_CALLER: ContextVar[int] = getattr(cimpl, "_reentry_identity_var", ContextVar("caller", default=0))
"""By which confluent-kafka's consumers tell their callers apart; 0: by the id of the thread."""


@contextmanager
def calling() -> Iterator[None]:
    """Raise whatever a call of librdkafka raises as :class:`ClientError`.

    That is KafkaException, and for a queue that is full BufferError. A fatal error is raised by whichever call serves
    its event; when the same call serves a delivery report after it, CPython raises SystemError, caused by the error.

    Raises:
        ClientError: the call has failed; or the client, which is of no use any more when the error is fatal.
    """
    try:
        yield
    except KafkaException as refused:
        raise ClientError(refused.args[0]) from None
    except BufferError:
        raise ClientError(KafkaError(KafkaError._QUEUE_FULL)) from None  # noqa: SLF001 (librdkafka's own code)
    except SystemError as both:
        if not isinstance(both.__cause__, KafkaException):
            raise
        raise ClientError(both.__cause__.args[0]) from None


def within(call: Callable[[], object], timeout_s: float) -> None:
    """Run a call of librdkafka that may never return, whatever time it is given; at most for ``timeout_s``.

    A call that is not over by then goes on in a daemon thread, which keeps its client from being destroyed. A consumer
    lets one thread call it at a time; for it, that thread is the present one, which may be within a callback.

    Raises:
        ClientError: it has failed; ``_TIMED_OUT``: it is not over.
    """
    ended: list[BaseException | None] = []
    caller = _CALLER.get() or threading.get_ident()

    def run() -> None:
        _CALLER.set(caller)
        try:
            with calling():
                call()
        except BaseException as failure:  # noqa: BLE001 - raised in the thread that waits
            ended.append(failure)
        else:
            ended.append(None)

    thread = threading.Thread(target=run, name="librdkafka-call", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if not ended:
        raise ClientError(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 (librdkafka's own code)
    if ended[0] is not None:
        raise ended[0]


def closed(consumer: Consumer, within_s: float = CLOSES_WITHIN_S) -> None:
    """Close a consumer, unless that has not come to its end after ``within_s``: librdkafka may wait for ever."""
    with suppress(ClientError):
        within(consumer.close, within_s)


def made(kind: Callable[[Configuration], ClientT], settings: Configuration) -> ClientT:
    """A client of that kind.

    Raises:
        EnvironmentFault: librdkafka cannot start it, for want of threads or memory.
    """
    try:
        with calling():
            return kind(settings)
    except ClientError as refused:
        raise EnvironmentFault(
            f"client {settings.get('client.id', '')!r} could not be started: {refused}.",
            "Look at ulimit -u and at the machine's free memory.",
        ) from None


class _Chatter(RotatingFileHandler):
    """librdkafka's log; the handler drops a line that it cannot write, without an error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; the file may have to be opened first."""
        with suppress(OSError):
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's own name)
        """Anything else than a refused write is a bug, and stays one."""
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)

    def close(self) -> None:
        """Close the file, which writes what is left of a line."""
        with suppress(OSError):
            super().close()


def file_log(path: Path, run: str, *, most_bytes: int = 0) -> logging.Logger:
    """A log of its own for a run's clients, in the file ``path`` and nowhere else; close it with `close_log`.

    A file of ``most_bytes`` becomes ``path.1``, and a new one begins; 0: it may grow without end.
    """
    log = logging.getLogger(f"seawall.clients.{run}")
    log.propagate = False
    log.setLevel(logging.INFO)
    handler = _Chatter(path, maxBytes=most_bytes, backupCount=1, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    return log


def close_log(log: logging.Logger) -> None:
    """Close the files of ``log``."""
    for handler in list(log.handlers):
        log.removeHandler(handler)
        handler.close()


class _DiscreetLog(logging.LoggerAdapter[logging.Logger]):
    """A log without the secrets of a client: librdkafka names there the server of tokens, whose URL may have one."""

    def __init__(self, log: logging.Logger, properties: ClientProperties) -> None:
        super().__init__(log)
        self._properties = properties

    def log(self, level: int, msg: object, *args: object, **_: Any) -> None:
        """Write a line."""
        self.logger.log(level, "%s", self._properties.hidden_in(str(msg) % args if args else str(msg)))


def _error_logger(client_id: str, log: _DiscreetLog) -> Callable[[KafkaError], None]:
    return lambda error: log.info("%s: %s", client_id, error)
