"""Collects the evidence of nodes, nemesis and schedule into the archive after the run."""

from __future__ import annotations

from harness.controls import WireTaps
from harness.history.delete_records_log import DeleteRecordsLog
from harness.history.schema import WIRE
from harness.observations import BrokerEvidence, NodeStates, ShowsLogs, TellsClients
from harness.runner.archive import Archive
from harness.runner.nemesis import Nemesis
from harness.runner.schedule_log import ScheduleLog
from harness.target import Target, supports


def collect(
    archive: Archive,
    target: Target,
    nemesis: Nemesis,
    schedule_log: ScheduleLog,
    orders: DeleteRecordsLog,
    *,
    is_tapped: bool = False,
) -> None:
    """Archive faults, orders, the timeline, the replica logs and the nodes' own logs. The target must have stopped.

    First the small parts that exist only in this process.
    """
    archive.take_faults(nemesis.records)
    archive.take_schedule_log(schedule_log)
    archive.take_orders(orders)
    archive.take_endings(target.endings() if supports(target, NodeStates) else ())
    if supports(target, BrokerEvidence):
        archive.take("timeline", target.timeline(archive.run))
        archive.take_replica_logs(target.replica_logs())
    else:  # a run has every table
        archive.take("timeline", target.metadata(archive.run) if isinstance(target, TellsClients) else ())
        archive.take_replica_logs(target.replica_logs() if isinstance(target, ShowsLogs) else ())
    if is_tapped and supports(target, WireTaps):
        archive.take(WIRE.name, ({"run": archive.run, **row} for row in target.wire()))
    if supports(target, BrokerEvidence):
        archive.take_logs(target)
