"""``python -m harness.broker PARENT``: imports the nodes' program once, and forks each node that it is asked for."""

import gc
import os
import signal
import socket
import sys

import crc32c  # noqa: F401 (loaded before the first batch asks for it: it takes longer than serving a batch does)

from harness.broker.broker import Broker
from harness.broker.controller_node import ControllerNode
from harness.broker.forking import Role, serve
from harness.broker.node import die_with

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; ending the nodes is the harness's business
    die_with(int(sys.argv[1]))
    gc.collect()
    gc.freeze()  # no node searches what all have in common
    serve(socket.socket(fileno=0), {Role.BROKER: Broker, Role.CONTROLLER: ControllerNode})
    os._exit(0)  # the kernel kills the nodes that are left
