"""What the driver of a node provides: ports, timeline, and a supervisor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.broker.ports import FileSystem, Network
from harness.broker.timeline import Timeline
from harness.clock import Clock


@dataclass(frozen=True, slots=True)
class Supervisor:
    """What a process or a simulation does with the node that runs in it.

    Attributes:
        say: takes one line for the operator.
        halt: ends the node with an exit code, soon; what was already sent still leaves.
        report: takes the request of a client that could not be served, and the exception; may raise that again.
    """

    say: Callable[[str], None]
    halt: Callable[[int], None]
    report: Callable[[str, Exception], None]


@dataclass(frozen=True, slots=True)
class NodeEnvironment:
    """What a process or a simulation provides to a node.

    Attributes:
        network: the port.
        files: its data directory.
        clock: the port.
        timeline: takes the node's changes of state.
        supervisor: takes what the node has to say, and ends it.
    """

    network: Network
    files: FileSystem
    clock: Clock
    timeline: Timeline
    supervisor: Supervisor
