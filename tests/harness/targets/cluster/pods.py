"""A cluster whose nodes run in pods of a stand-in for Kubernetes, and the cluster file that describes it.

A pod is a namespace of processes with a ``/proc`` of its own, whose first process ends when the broker does; a kubelet,
which is a thread here, starts it again, and until then ``kubectl`` finds no container. Names, addresses and files are
those of the machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.harness.targets.cluster.plain_cluster import PlainCluster, described

_DIES_WITH_ITS_THREAD = ("setpriv", "--pdeathsig", "KILL")
_NAMESPACES = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
_CONTAINER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("stand_in_container.py")))
_LIKE_KAFKA = (sys.executable, "-X", "java", "-X", "kafka.Kafka")
"""Python ignores both words, by which the preset knows Kafka's process."""

_AWAY_S = 1.0


class Pod:
    """Runs one, again whenever it has ended, until :meth:`stop`.

    Args:
        place: where ``kubectl`` looks for the pod.
        start: the command of its container.
    """

    def __init__(self, place: Path, start: str) -> None:
        self._place = place
        self._command = (*_DIES_WITH_ITS_THREAD, *_NAMESPACES, *_CONTAINER)
        self._environment = {**os.environ, "COMMAND": start}
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._container: subprocess.Popen[bytes] | None = None
        self._kubelet = threading.Thread(target=self._to_its_end, daemon=True)
        self._kubelet.start()

    def stop(self) -> None:
        with self._lock:
            self._is_over.set()
            if self._container is not None:
                self._container.kill()
        self._kubelet.join()

    def _to_its_end(self) -> None:
        while True:
            with self._lock:
                if self._is_over.is_set():
                    return
                self._container = subprocess.Popen(self._command, stdout=subprocess.PIPE, env=self._environment)
            assert self._container.stdout is not None
            if self._container.stdout.readline():  # it is in its namespaces now
                self._place.write_text(str(self._container.pid))
            self._container.wait()
            self._container.stdout.close()
            self._place.write_text("")
            self._is_over.wait(_AWAY_S)


@contextmanager
def in_pods(directory: Path, pods: Path, bugs: str = "", **settings: Any) -> Iterator[PlainCluster]:
    """Start one, whose pods ``kubectl`` finds in ``pods``; takes root."""
    with described(directory, bugs, python=_LIKE_KAFKA, **settings) as cluster, ExitStack() as started:
        for node in reversed(cluster.file["nodes"]):
            started.callback(Pod(pods / _name(node), node["commands"]["start"]).stop)
        file = {"bootstrap": cluster.file["bootstrap"], "preset": "strimzi"}
        file["nodes"] = [_entry(node) for node in cluster.file["nodes"]]
        cluster.await_brokers()
        yield replace(cluster, file=file)


def _name(node: Mapping[str, Any]) -> str:
    return f"kafka-{node['id']}"


def _entry(node: Mapping[str, Any]) -> Mapping[str, Any]:
    about = {key: node[key] for key in ("id", "address", "port")}
    return {**about, "transport": {"kubectl": _name(node), "options": ["-n", "kafka"]}}
