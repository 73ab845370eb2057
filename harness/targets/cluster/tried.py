"""Tries, for ``seawall doctor``, what can be tried of a file's commands without harm to the cluster.

The commands that undo harm are harmless where there is none, and show what its user may do on a node.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from harness.controls import DiskSpace, Kills, Links, Pauses, Shutdowns, WallClocks
from harness.errors import EnvironmentFault
from harness.model import is_broker
from harness.target import Target
from harness.targets.cluster.cluster_file import ClusterFile, Transport
from harness.targets.cluster.commanded_node import NEEDED, SHOWS, WRITTEN, CommandedNode
from harness.targets.cluster.node_clocks import require_right, sharing
from harness.targets.cluster.own_machine import locked_out
from harness.targets.cluster.presets import PRESETS
from harness.targets.target_kind import Tried

_IN_WORDS: dict[type[Target], str] = {
    Kills: "kill",
    Shutdowns: "shutdown",
    Pauses: "pause",
    Links: "cut",
    DiskSpace: "full disk",
    WallClocks: "clock",
}


def tried(file: ClusterFile, nodes: Sequence[CommandedNode]) -> Iterator[Tried]:
    """One result for each node's transport, and for each node and control."""
    caveat = ""
    if file.preset is not None and not PRESETS[file.preset].was_tried:
        caveat = f"; preset {file.preset} has not been tried on a cluster"
    for node in nodes:
        reached = _look(f"node {node.name}: transport", partial(_greeted, node))
        yield reached
        for control in NEEDED if reached.works else ():
            yield _of_control(node, control, nodes, caveat)
        if reached.works and is_broker(node.name):
            yield _of_logs(node, caveat)


def _of_control(node: CommandedNode, control: type[Target], nodes: Sequence[CommandedNode], caveat: str) -> Tried:
    what = f"node {node.name}: {_IN_WORDS[control]}"
    if (missing := node.missing(control)) is not None:
        return Tried(what, None, f"not possible: there is no {missing}")
    if control is Links:
        return _look(what, lambda: _links_looked_at(node, nodes) + caveat)
    if control is DiskSpace:
        return _look(what, lambda: _disk_looked_at(node) + caveat)
    if control is WallClocks:
        return _of_clock(what, node, nodes, caveat)
    return _look(what, lambda: _process_looked_at(node, control) + caveat)


def _of_logs(node: CommandedNode, caveat: str) -> Tried:
    what = f"node {node.name}: replica logs"
    if (missing := node.missing_for(SHOWS)) is not None:
        return Tried(what, None, f"not read: there is no {missing}")
    return _look(what, lambda: _logs_looked_at(node) + caveat)


def _logs_looked_at(node: CommandedNode) -> str:
    """Read what is beside the logs."""
    with tempfile.TemporaryDirectory() as directory:
        node.save_logs((), Path(directory) / node.name)
    return f"{SHOWS!r} works"


def _greeted(node: CommandedNode) -> str:
    ran = node.greet()
    if ran.status:
        raise EnvironmentFault(f"it does not run a shell, {ran.in_words}.")
    return f"it runs a shell{_untried(node.transport)}"


def _untried(transport: Transport) -> str:
    """A clause on a transport by which no node has been harmed yet; empty: some have been."""
    return "" if transport.kubectl is None else "; kubectl exec has not been tried on a cluster"


def _process_looked_at(node: CommandedNode, control: type[Target]) -> str:
    process = node.state()
    if process is None:
        raise EnvironmentFault("command 'pid' prints the id of no process.")
    if control is Pauses:
        node.perform("resume")
        return f"process {process.pid} is there, and 'resume' works; not tried: 'pause'"
    untried = " and ".join(repr(name) for name in NEEDED[control] if name != "pid")
    return f"process {process.pid} is there; not tried: {untried}"


def _disk_looked_at(node: CommandedNode) -> str:
    if (said := node.disk()) != WRITTEN:
        raise EnvironmentFault(f"command 'write' prints {said!r}, not {WRITTEN!r}.")
    node.perform("free")
    return "'write' and 'free' work; not tried: 'fill'"


def _of_clock(what: str, node: CommandedNode, nodes: Sequence[CommandedNode], caveat: str) -> Tried:
    try:
        shared = sharing(nodes)
    except EnvironmentFault as failed:
        return Tried(what, False, failed.sentence.removesuffix("."))
    if shared is not None:
        return Tried(what, None, f"not possible: it would step a machine's clock, and {shared}")
    if not caveat and node.steps_its_machine:
        caveat = "; stepping a machine's clock has not been tried on a cluster"
    return _look(what, lambda: _clock_looked_at(node) + caveat)


def _clock_looked_at(node: CommandedNode) -> str:
    node.perform("unskew")
    clock = node.clock()
    require_right(clock, node.name)
    return (
        f"'now' and 'unskew' work, {clock.off_ms:+d} ms off this machine's clock to within {clock.off_unsure_ms} ms; "
        "not tried: 'skew'"
    )


def _links_looked_at(node: CommandedNode, nodes: Sequence[CommandedNode]) -> str:
    """Open a connection to each peer, count what is dropped from it, and have none dropped."""
    if (locked := locked_out(nodes)) is not None:
        raise EnvironmentFault(f"no links are cut, for {locked}.")
    for peer in nodes:
        if peer is node or peer.missing(Links) is not None:
            continue
        if not node.succeeds("reach", peer):
            raise EnvironmentFault(f"'reach' does not open a connection to node {peer.name}.")
        if not node.perform("dropped", peer).strip().isdecimal():
            raise EnvironmentFault("command 'dropped' prints no number.")
        node.perform("mend", peer)
    return "'reach', 'dropped' and 'mend' work; not tried: 'cut'"


def _look(what: str, look: Callable[[], str]) -> Tried:
    try:
        return Tried(what, True, look())
    except EnvironmentFault as failed:
        return Tried(what, False, failed.sentence.removesuffix("."))
