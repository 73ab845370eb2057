"""A simulated target with a topic, and the workload on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from harness.broker.settings import Settings
from harness.model import Link, NodeId, TopicPartition
from harness.orders import Pending, SendOrder, Sent
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.runner.archive import KeptArchive
from harness.simulation.stack.links import LinkConditions
from harness.target import TopicSpec
from harness.targets.simulated import SimulatedTarget
from tests.harness.simulation.stack.chaos_story import Parameters, run_clients

ValueT = TypeVar("ValueT")
LEDGER = TopicPartition("ledger", 0)
STEADY = LinkConditions(delay_ns=(100_000, 100_000))


class LoadedTarget:
    """Three brokers that hold ``ledger-0``, led by broker 0, and clients that do what a test orders."""

    def __init__(
        self,
        directory: Path,
        knobs: str = CURRENT_GENERATION,
        parameters: Parameters | None = None,
        *,
        bugs: str = "",
        **settings: Any,
    ) -> None:
        configured = Settings(**{"min_insync_replicas": 2, "default_replication_factor": 3, **settings})
        self.target = SimulatedTarget.made(
            directory, 3, generation(knobs, {"bugs": bugs}), configured, conditions=STEADY
        )
        self.target.start()
        self.target.create_topic(TopicSpec(LEDGER.topic, 1, 3, (tuple(map(NodeId, (0, 1, 2))),)))
        self.clock = self.target.clock
        archive = KeptArchive("test")
        recorder = archive.recorder(self.clock)
        ours = parameters or Parameters(rate=0, consumers=0)
        self.clients = run_clients(self.target.cluster, recorder, 1, ours, [LEDGER])
        self.scheduled = self.clients.scheduled
        self._recorder = recorder
        self._archive = archive

    def done(self, pending: Pending[ValueT], within_s: float = 60.0) -> ValueT:
        """Let time pass until the order is done."""
        assert self.clock.sleep_until(lambda: pending.result() is not None, within_s)
        result = pending.result()
        assert result is not None
        return result

    def orders(self) -> list[dict[str, Any]]:
        """The DeleteRecords that were sent, as in ``run.json``."""
        return list(self._recorder.orders.rows())

    def send(self, **order: Any) -> list[Sent]:
        return list(self.done(self.scheduled.send(SendOrder((LEDGER,), **{"count": 1, **order}))))

    def end_offset(self, node: str = "0") -> int:
        replica = self.target.replica(node, LEDGER)
        assert replica is not None
        return replica.log_end_offset

    def rows(self, f: str, **columns: object) -> list[dict[str, Any]]:
        """The rows of the history about ``f`` with these values, in order."""
        self._recorder.flush()
        rows = [row for row in self._archive.history if row["f"] == f]
        return [row for row in rows if all(row[name] == value for name, value in columns.items())]

    def isolate(self, node: str, *ends: str) -> None:
        """Let nothing pass between ``node`` and ``ends``."""
        self.target.cut([link for end in ends for link in (Link(node, end), Link(end, node))])

    def join(self, node: str, *ends: str) -> None:
        """Undo :meth:`isolate`."""
        self.target.mend([link for end in ends for link in (Link(node, end), Link(end, node))])
