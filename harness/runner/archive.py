"""Stores the evidence of a run in a run directory, or, for a run that is checked at once, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol

from harness.clock import Clock
from harness.history.blocks import Block, rows_of
from harness.history.delete_records_log import DeleteRecordsLog
from harness.history.kept_recorder import KeptRecorder
from harness.history.recorder import Recorder
from harness.history.run_directory import RunDirectory
from harness.history.schema import REPLICA_LOGS
from harness.observations import BrokerEvidence
from harness.runner.nemesis import FaultRecord
from harness.runner.schedule_log import ScheduleLog
from harness.runner.unknown_topics import UnknownTopic
from harness.target import Ending

Rows = Sequence[Mapping[str, Any]]


class Archive(Protocol):
    """Takes the evidence of a run.

    Attributes:
        run: the run's id.
    """

    run: str

    def recorder(self, clock: Clock) -> Recorder:
        """The recorder of the client history; call it once."""
        ...

    def make_room(self) -> None:
        """Free the reserved space, so that the end of the run can be recorded; idempotent."""
        ...

    def take(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """A whole table other than the history."""
        ...

    def take_replica_logs(self, blocks: Iterable[Block]) -> None:
        """What every replica holds, minus ``run``."""
        ...

    def take_faults(self, records: Sequence[FaultRecord]) -> None:
        """The faults so far; replaces the earlier ones."""
        ...

    def take_schedule_log(self, schedule_log: ScheduleLog) -> None:
        """The log of the schedule."""
        ...

    def take_unrest(self, seen: Mapping[str, Any]) -> None:
        """The observations of a healed cluster that did not come to rest; see :mod:`harness.runner.unrest`."""
        ...

    def take_unknown_topics(self, topics: Sequence[UnknownTopic]) -> None:
        """The topics of the run that the cluster did not know in the end."""
        ...

    def take_unrecovered(self, missing: Sequence[str]) -> None:
        """What a healed cluster lacks that does not recover, where no node can be probed."""
        ...

    def take_endings(self, endings: Sequence[Ending]) -> None:
        """The exits of nodes that the harness did not order."""
        ...

    def take_program(self, document: Mapping[str, Any]) -> None:
        """What became of a user's program; empty: there was none."""
        ...

    def take_orders(self, orders: DeleteRecordsLog) -> None:
        """The DeleteRecords requests of clients, and how they ended."""
        ...

    def take_logs(self, target: BrokerEvidence) -> None:
        """The nodes' own log output."""
        ...


class DirectoryArchive:
    """Implements :class:`Archive` with a run directory, which already has its ``run.json``."""

    def __init__(self, directory: RunDirectory) -> None:
        self.run = directory.manifest().run
        self._directory = directory
        directory.keep_room()

    def recorder(self, clock: Clock) -> Recorder:
        """See :class:`Archive`."""
        return self._directory.recorder(clock)

    def make_room(self) -> None:
        """See :class:`Archive`."""
        self._directory.make_room()

    def take(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """See :class:`Archive`."""
        self._directory.write_table(table, rows)

    def take_replica_logs(self, blocks: Iterable[Block]) -> None:
        """See :class:`Archive`."""
        self._directory.write_blocks(REPLICA_LOGS.name, blocks)

    def take_faults(self, records: Sequence[FaultRecord]) -> None:
        """See :class:`Archive`."""
        self.take("faults", [record.row(self.run) for record in records])

    def take_schedule_log(self, schedule_log: ScheduleLog) -> None:
        """See :class:`Archive`."""
        self._directory.write_schedule_log(schedule_log.to_json())

    def take_unrest(self, seen: Mapping[str, Any]) -> None:
        """See :class:`Archive`."""
        self._directory.write_manifest(replace(self._directory.manifest(), unrest=seen))

    def take_unknown_topics(self, topics: Sequence[UnknownTopic]) -> None:
        """See :class:`Archive`."""
        written = [asdict(one) for one in topics]
        self._directory.write_manifest(replace(self._directory.manifest(), unknown_topics=written))

    def take_unrecovered(self, missing: Sequence[str]) -> None:
        """See :class:`Archive`."""
        self._directory.write_manifest(replace(self._directory.manifest(), unrecovered=list(missing)))

    def take_endings(self, endings: Sequence[Ending]) -> None:
        """See :class:`Archive`."""
        written = [asdict(one) for one in endings]
        self._directory.write_manifest(replace(self._directory.manifest(), endings=written))

    def take_program(self, document: Mapping[str, Any]) -> None:
        """See :class:`Archive`."""
        if document:
            self._directory.write_manifest(replace(self._directory.manifest(), program=document))

    def take_orders(self, orders: DeleteRecordsLog) -> None:
        """See :class:`Archive`."""
        self._directory.write_manifest(replace(self._directory.manifest(), orders=orders.rows()))

    def take_logs(self, target: BrokerEvidence) -> None:
        """See :class:`Archive`."""
        target.copy_logs(self._directory.broker_logs)


class KeptArchive:
    """Implements :class:`Archive` in memory.

    Attributes:
        tables: by name, without the history.
        schedule_log: None before the end.
        unrest: the observations of a healed cluster that did not come to rest; empty: it did, or there is none.
        endings: the exits of nodes that the harness did not order, as in ``run.json``.
        orders: the DeleteRecords requests of clients, as in ``run.json``; None before the end.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.tables: dict[str, Rows] = {}
        self.schedule_log: ScheduleLog | None = None
        self.unrest: Mapping[str, Any] = {}
        self.endings: Sequence[Mapping[str, Any]] = ()
        self.orders: Sequence[Mapping[str, Any]] | None = None
        self._recorder: KeptRecorder | None = None

    def recorder(self, clock: Clock) -> Recorder:
        """See :class:`Archive`."""
        self._recorder = KeptRecorder(self.run, clock)
        return self._recorder

    @property
    def history(self) -> list[dict[str, Any]]:
        """The rows of the history."""
        return self._recorder.rows if self._recorder else []

    def make_room(self) -> None:
        """See :class:`Archive`; no memory is reserved."""

    def take(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """See :class:`Archive`."""
        self.tables[table] = list(rows)

    def take_replica_logs(self, blocks: Iterable[Block]) -> None:
        """See :class:`Archive`."""
        self.take(REPLICA_LOGS.name, rows_of(REPLICA_LOGS, (block.but(run=self.run) for block in blocks)))

    def take_faults(self, records: Sequence[FaultRecord]) -> None:
        """See :class:`Archive`."""
        self.take("faults", [record.row(self.run) for record in records])

    def take_schedule_log(self, schedule_log: ScheduleLog) -> None:
        """See :class:`Archive`."""
        self.schedule_log = schedule_log

    def take_unrest(self, seen: Mapping[str, Any]) -> None:
        """See :class:`Archive`."""
        self.unrest = seen

    def take_unknown_topics(self, topics: Sequence[UnknownTopic]) -> None:
        """See :class:`Archive`; a rehearsal's nodes can be probed, so it has none."""

    def take_unrecovered(self, missing: Sequence[str]) -> None:
        """See :class:`Archive`; as for unknown topics."""

    def take_endings(self, endings: Sequence[Ending]) -> None:
        """See :class:`Archive`."""
        self.endings = [asdict(one) for one in endings]

    def take_program(self, document: Mapping[str, Any]) -> None:
        """See :class:`Archive`; no program runs in virtual time."""

    def take_orders(self, orders: DeleteRecordsLog) -> None:
        """See :class:`Archive`."""
        self.orders = orders.rows()

    def take_logs(self, target: BrokerEvidence) -> None:
        """See :class:`Archive`; simulated nodes log into their timelines."""
