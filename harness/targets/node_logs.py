"""What the nodes of a cluster of local processes have printed: where it is, and what a copy of it is called."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

NODE_LOG = "node.log"
"""Below the directory of a process: what it printed, over all incarnations."""
SECOND = "broker"
"""Below the directory of a node of two processes, ZooKeeper and a broker: that of the broker."""


def logs_of(node: Path) -> Mapping[str, Path]:
    """By what a copy of it is to be called, what each process printed of the node whose directory this is.

    A node that has not been started has none yet.
    """
    second = node / SECOND
    if second.is_dir():
        return {"zookeeper.log": node / NODE_LOG, f"{node.name}.log": second / NODE_LOG}
    return {f"{node.name}.log": node / NODE_LOG}


def copy_logs(cluster: Path, directory: Path) -> list[str]:
    """Copy into ``directory`` what the nodes have printed whose directories are in ``cluster``.

    It takes nobody who has started them. Returns the names of the copies; none where there is no cluster.

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
