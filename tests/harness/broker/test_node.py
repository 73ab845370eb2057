"""A node whose own files cannot be written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.errors import ExitCode
from harness.model import NodeId
from tests.harness.broker.cluster import Cluster


def test_a_node_that_cannot_write_its_timeline_says_so_in_a_line_and_has_not_halted(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, brokers=1)
    try:
        cluster.configs[NodeId(0)] = replace(cluster.configs[NodeId(0)], timeline="/dev/full")
        assert cluster.spawn(0).wait(60) == ExitCode.ENVIRONMENT
        assert cluster.log(0).splitlines()[-1] == "Node 0 cannot write its timeline: No space left on device."
        assert "Traceback" not in cluster.log(0)
    finally:
        cluster.stop()
