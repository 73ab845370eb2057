"""Forks the nodes of the built-in cluster from a process that has imported their program, which takes 250 ms of CPU.

The harness sends datagrams of JSON over the socket that is this process's standard input, one at a time:

* ``{"fork": ROLE, "name": NODE, "config": PATH, "directory": PATH}`` with two descriptors, the standard input and the
  log of the new node: ``{"pid": PID}``, or ``{"error": TEXT}`` where the kernel refuses it;
* ``{"reap": PID}`` for a node that has ended: ``{"status": STATUS}``, negative for the signal that ended it.

When the harness closes its end, or dies, this process ends, and the kernel kills its nodes with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import traceback
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NoReturn

from harness.broker.node import Build, die_with, main
from harness.model import CONTROLLER_ID, NodeId

_PR_SET_NAME = 15
_MOST_BYTES = 65_536
_BROKEN = 1


class Role(StrEnum):
    """What a node is."""

    BROKER = "broker"
    CONTROLLER = "controller"


def role_of(node: NodeId) -> Role:
    """The role of a node of the built-in cluster."""
    return Role.CONTROLLER if node == CONTROLLER_ID else Role.BROKER


def serve(harness: socket.socket, builds: Mapping[Role, Build]) -> None:
    """Answer the requests of the harness until it closes its end.

    Args:
        harness: the connected socket, of ``SOCK_SEQPACKET``.
        builds: makes the node of each role.
    """
    while True:
        message, descriptors, _, _ = socket.recv_fds(harness, _MOST_BYTES, 2)
        if not message:
            return
        request = json.loads(message)
        answer = _fork(request, descriptors, builds) if "fork" in request else _reap(request["reap"])
        harness.send(json.dumps(answer).encode())


def _reap(pid: int) -> dict[str, Any]:
    _, status = os.waitpid(pid, 0)
    return {"status": os.waitstatus_to_exitcode(status)}


def _fork(request: dict[str, Any], descriptors: list[int], builds: Mapping[Role, Build]) -> dict[str, Any]:
    parent = os.getpid()
    try:
        pid = os.fork()
        if not pid:
            _become(request, descriptors, builds, parent)
        return {"pid": pid}
    except OSError as error:
        return {"error": str(error)}
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _become(request: dict[str, Any], descriptors: list[int], builds: Mapping[Role, Build], parent: int) -> NoReturn:
    """Run the node in the process that was just forked, and end it."""
    status = _BROKEN
    try:
        os.setsid()
        stdin, log = descriptors
        for descriptor, number in ((stdin, 0), (log, 1), (log, 2)):  # the harness's socket was number 0
            os.dup2(descriptor, number)
        for descriptor in descriptors:
            os.close(descriptor)
        die_with(parent)
        ctypes.CDLL(None).prctl(_PR_SET_NAME, request["name"].encode())
        os.chdir(request["directory"])
        status = main(builds[Role(request["fork"])], request["config"])
    except BaseException:  # noqa: BLE001 - the log is all that is left of it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
