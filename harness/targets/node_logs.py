"""Finds and copies the log files of a cluster of local processes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

NODE_LOG = "node.log"
"""Below the directory of a process: its output, over all incarnations."""
SECOND = "broker"
"""Below the directory of a node of two processes, ZooKeeper and a broker: that of the broker."""


def logs_of(node: Path) -> Mapping[str, Path]:
    """The log files of the node with this directory, by the file name of a copy; none before its first start."""
    second = node / SECOND
    if second.is_dir():
        return {"zookeeper.log": node / NODE_LOG, f"{node.name}.log": second / NODE_LOG}
    return {f"{node.name}.log": node / NODE_LOG}


def copy_logs(cluster: Path, directory: Path) -> list[str]:
    """Copy the logs of the nodes in the directory ``cluster`` into ``directory``; the nodes' target is not needed.

    Returns the names of the copies; none where there is no cluster.

    Raises:
        OSError: a copy cannot be written.
    """
    copied = []
    for name, log in _found(cluster):
        shutil.copyfile(log, directory / name)
        copied.append(name)
    return copied


def _found(cluster: Path) -> Iterator[tuple[str, Path]]:
    for node in sorted(cluster.glob("*/")):
        yield from ((name, log) for name, log in logs_of(node).items() if log.is_file())
