"""Everything outside a node, in one object: its ports, and whom it tells what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.broker.ports import FileSystem, Network
from harness.broker.timeline import Timeline
from harness.clock import Clock


@dataclass(frozen=True, slots=True)
class NodeEnvironment:
    """What a node is given to live on, by a process or by a simulation.

    Attributes:
        network: the port.
        files: its data directory.
        clock: the port.
        timeline: takes what the node says about itself.
        say: takes one line for the operator.
        halt: ends the node with an exit code, soon; what was already sent still leaves.
        report: takes the request of a client that could not be served, and the exception; may raise that again.
    """

    network: Network
    files: FileSystem
    clock: Clock
    timeline: Timeline
    say: Callable[[str], None]
    halt: Callable[[int], None]
    report: Callable[[str, Exception], None]
