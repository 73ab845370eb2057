"""Reads and corrects broker registrations and the controller that Kafka keeps in ZooKeeper, past every proxy.

A session outlives its process, so a restarted broker finds its old registration and refuses to start (Kafka until 2.1,
and later unless the session was its own).
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from harness.errors import EnvironmentFault
from harness.model import CONTROLLER_ID, NodeId
from harness.targets.addresses import Address

_CONNECT_TIMEOUT_S = 15.0
_SESSION_TIMEOUT_S = 10.0
_ANSWER_TIMEOUT_S = 1.0
_POLL_S = 0.05
_SERVER_STATS = b"srvr"
_BROKERS = "/brokers/ids"
_CONTROLLER = "/controller"
_SILENT = logging.getLogger("seawall.targets.kafka.zookeeper")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def answers(address: Address) -> bool:
    """Whether ZooKeeper answers ``srvr``, which every release does without being configured to."""
    try:
        with socket.create_connection(address, _ANSWER_TIMEOUT_S) as connection:
            connection.sendall(_SERVER_STATS)
            return bool(connection.recv(1))
    except OSError:
        return False


@contextmanager
def zookeeper(address: Address, timeout_s: float = _CONNECT_TIMEOUT_S) -> Iterator[KazooClient]:
    """A client of the cluster's ZooKeeper, which listens at ``address``.

    Raises:
        EnvironmentFault: it does not answer within ``timeout_s``, or breaks off.
    """
    host, port = address
    client = KazooClient(f"{host}:{port}", timeout=_SESSION_TIMEOUT_S, logger=_SILENT)
    try:
        client.start(timeout_s)
        yield client
    except (KazooTimeoutError, KazooException) as problem:
        raise EnvironmentFault(
            f"ZooKeeper does not answer: {type(problem).__name__} {problem}".rstrip() + "."
        ) from None
    finally:
        client.stop()
        client.close()


def registered(address: Address, timeout_s: float = _CONNECT_TIMEOUT_S) -> set[NodeId]:
    """The brokers that have a session, the controller among them.

    Raises:
        EnvironmentFault: ZooKeeper does not answer.
    """
    with zookeeper(address, timeout_s) as client:
        return _registered(client)


def forget_registration(address: Address, broker: NodeId) -> None:
    """Wait until ZooKeeper answers, and remove the registration of a broker that is not running.

    Raises:
        EnvironmentFault: ZooKeeper does not answer.
    """
    with zookeeper(address) as client:
        _delete(client, f"{_BROKERS}/{broker}")


def give_control(address: Address, timeout_s: float) -> None:
    """Wait until the node ``controller`` is registered, and have it elected Kafka's controller.

    Kafka elects the first broker that creates the vacant node. The harness deletes it until ``controller`` wins, which
    it nearly always does: it reaches ZooKeeper directly, the others through proxies.

    Raises:
        EnvironmentFault: that took longer than ``timeout_s``.
    """
    with zookeeper(address, timeout_s) as client:
        _await(lambda: CONTROLLER_ID in _registered(client), timeout_s, "the controller's broker has not registered")
        _await(lambda: _controls(client), timeout_s, "the controller's broker was not elected Kafka's controller")


def vacate_control(address: Address) -> None:
    """Depose the present controller, so that Kafka elects one anew.

    Raises:
        EnvironmentFault: ZooKeeper does not answer.
    """
    with zookeeper(address) as client:
        _delete(client, _CONTROLLER)


def _controls(client: KazooClient) -> bool:
    """Whether the present incarnation of ``controller`` is Kafka's controller; deposes another one."""
    try:
        _, stat = client.get(_CONTROLLER)
        registration = client.exists(f"{_BROKERS}/{CONTROLLER_ID}")
    except NoNodeError:
        return False
    if registration is not None and stat.owner_session_id == registration.owner_session_id:
        return True
    _delete(client, _CONTROLLER)
    return False


def _registered(client: KazooClient) -> set[NodeId]:
    try:
        return {NodeId(int(name)) for name in client.get_children(_BROKERS)}
    except NoNodeError:
        return set()


def _delete(client: KazooClient, path: str) -> None:
    try:
        client.delete(path)
    except NoNodeError:
        return


def _await(holds: Callable[[], bool], timeout_s: float, complaint: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() >= deadline:
            raise EnvironmentFault(f"{complaint} within {timeout_s:g} s.")
        time.sleep(_POLL_S)
