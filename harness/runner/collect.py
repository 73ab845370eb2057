"""After the run: everything that the nodes and the nemesis know goes into the run directory."""

from __future__ import annotations

from harness.history.run_directory import RunDirectory
from harness.runner.nemesis import Nemesis
from harness.target import Target


def collect(directory: RunDirectory, target: Target, nemesis: Nemesis) -> None:
    """Write the timeline, the replica logs, the faults and the nodes' own logs. The target must have stopped."""
    run = directory.manifest().run
    directory.write_table("timeline", target.timeline(run))
    directory.write_table("replica_logs", target.replica_logs(run))
    directory.write_table("faults", [record.row(run) for record in nemesis.records])
    target.copy_logs(directory.broker_logs)
