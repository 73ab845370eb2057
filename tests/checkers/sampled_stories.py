"""Two losses as on real Kafka: nobody tells what happens at once, and somebody looks now and then."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.checkers.sampling import SAMPLED
from tests.checkers.story import CONTROLLER, Row, Story

PLACE: Row = {"topic": "ledger", "partition": 0}


class Looks(Story):
    """A story told look by look; times are milliseconds since it began."""

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self.timeline = [row for row in self.timeline if row["kind"] == "started"]
        self.sequences = dict.fromkeys(self.sequences, 1)

    def at(self, time_ms: int) -> Looks:
        """What comes next comes then."""
        self.now = time_ms * 1_000_000
        return self

    def look(self, node: int, term: tuple[int, int], marks: tuple[int, int]) -> None:
        """``term``: leader and epoch as ``node`` believes; ``marks``: its high watermark and log end."""
        leader, epoch = term
        role = "leader" if leader == node else "follower"
        self.say(node, "state", 0, role=role, leader=leader, leader_epoch=epoch, partition_epoch=epoch,
                 high_watermark=marks[0], log_end_offset=marks[1], log_start_offset=0)  # fmt: skip

    def decide(self, leader: int, epoch: int, isr: Sequence[int], kind: str = "election") -> None:
        """The controller elects a leader, or changes the ISR."""
        said = {"clean": True, "elected_from_isr": True, "previous_leader": 0, "controller_epoch": 1}
        self.say(CONTROLLER, kind, 0, said | {"cause": "somebody went"}, leader=leader, leader_epoch=epoch,
                 partition_epoch=len(self.timeline), isr=list(isr))  # fmt: skip

    def ok(self, value: int, offset: int) -> None:
        """A send that began two milliseconds ago is acknowledged now."""
        op = next(self.ops)
        about: Row = {"process": 1, "op": op, "f": "send", **PLACE, "value": value, "acks": -1}
        self.now -= 2_000_000
        self.row(**about, type="invoke")
        self.now += 1_000_000
        self.row(**about, type="ok", offset=offset)

    def read(self, offset: int, value: int, epoch: int) -> None:
        """A consumer is given a record."""
        about: Row = {"process": 50, "op": next(self.ops), "f": "poll"}
        self.row(**about, type="invoke")
        self.row(**about, type="ok", **PLACE, offset=offset, value=value, leader_epoch=epoch, intact=True)

    def harm(self, name: str, kind: str, node: int, until_ms: int, proof: str) -> None:
        """A fault from now on, proven 10 ms later, until some time."""
        t, until_ns = self.now, until_ms * 1_000_000
        self.fault(name, kind=kind, nodes=[str(node)], injected_ns=t, proven_ns=t + 10_000_000, proof=proof,
                   healed_ns=until_ns, heal_proven_ns=until_ns + 1)  # fmt: skip

    def begin(self, node: int) -> None:
        """A node is started anew."""
        self.incarnations[node] += 1
        self.sequences[node] = 0
        self.say(node, "started", None)

    def end(self, leader: int, epoch: int, logs: dict[int, list[tuple[int, int]]], time_ms: int) -> Looks:
        """Everybody is found with these logs (epochs and values), and the leader's is read to its end."""
        self.at(time_ms)
        part = self.partitions[0]
        part.leader, part.epoch = leader, epoch
        part.logs = {node: list(log) for node, log in logs.items()}
        part.marks = {node: len(log) for node, log in logs.items()}
        self.finish()
        for row in self.history:
            if row["leader_epoch"] == -1:
                row["leader_epoch"] = None
        return self

    def kept(self, path: Path) -> Path:
        """The run's directory."""
        return self.write(path, guarantees={**SAMPLED, "unclean_election": False})


def two_failovers() -> Looks:
    """KIP-101 on message format 1: no record bears an epoch, and a follower cuts its log at its own watermark."""
    s = Looks("two-failovers")
    s.at(50).decide(0, 0, (0, 1, 2))
    for node in (0, 1, 2):
        s.at(100 + node).look(node, (0, 0), (0, 0))
    s.at(500).look(0, (0, 0), (1, 1))
    for node in (1, 2):
        s.at(500 + node).look(node, (0, 0), (1, 1))
    s.at(505).ok(100, 0)
    s.at(900).look(0, (0, 0), (1, 2))
    s.at(1000).ok(101, 1)
    s.at(1002).look(2, (0, 0), (1, 2))
    s.at(1004).look(0, (0, 0), (2, 2))
    s.at(1009).look(1, (0, 0), (1, 2))
    s.at(2000).harm("dead", "kill", 0, 9000, "node 0: process 7 is gone, by SIGKILL")
    s.at(4000).decide(1, 1, (1, 2))
    s.at(4100).look(2, (0, 0), (1, 2))
    s.at(4200).look(1, (1, 1), (1, 2))
    s.at(4300).look(2, (1, 1), (1, 1))
    s.at(4500).harm("frozen", "pause", 1, 7000, "node 1: process 8 exists, in state T")
    s.at(6000).decide(2, 2, (2,))
    s.at(6100).look(2, (2, 2), (1, 1))
    s.at(7100).look(1, (1, 1), (1, 2))
    s.at(7500).look(1, (2, 2), (1, 1))
    s.at(7600).decide(2, 2, (2, 1), "isr")
    s.at(8000).look(2, (2, 2), (1, 2))
    s.at(8005).ok(102, 1)
    s.at(8900).begin(0)
    s.at(9100).look(0, (2, 2), (2, 2))
    old, new = [(-1, 100), (-1, 101)], [(-1, 100), (-1, 102)]
    return s.end(2, 2, {0: old, 1: new, 2: new}, 10_000)


def last_page_cache() -> Looks:
    """Two brokers are stopped, the third loses power, and who comes back follows it."""
    s = Looks("last-page-cache")
    s.at(50).decide(2, 0, (0, 1, 2))
    for node in (0, 1, 2):
        s.at(100 + node).look(node, (2, 0), (0, 0))
    s.at(500).look(2, (2, 0), (0, 1))
    for node in (0, 1):
        s.at(501 + node).look(node, (2, 0), (0, 1))
    s.at(505).ok(100, 0)
    s.at(508).look(2, (2, 0), (1, 1))
    s.at(900).look(0, (2, 0), (1, 2))
    s.at(910).ok(101, 1)
    s.at(915).look(2, (2, 0), (2, 2))
    s.at(920).look(1, (2, 0), (1, 2))
    s.at(940).read(1, 101, 0)
    s.at(1000).harm("away0", "stop", 0, 7000, "node 0: process 7 is gone, having shut down as it was asked to")
    s.at(1050).decide(2, 0, (2, 1), "isr")
    s.at(1200).harm("away1", "stop", 1, 6000, "node 1: process 8 is gone, having shut down as it was asked to")
    s.at(1250).decide(2, 0, (2,), "isr")
    s.at(1900).look(2, (2, 0), (2, 2))
    lost = "node 2: process 9 is gone, by SIGKILL; dropped from the page cache: ledger-0/0.log (106 bytes)"
    s.at(2000).harm("dark", "power_loss", 2, 4000, lost)
    s.at(3900).begin(2)
    s.at(4000).decide(2, 1, (2,))
    s.at(4500).look(2, (2, 1), (0, 1))
    s.at(5000).begin(1)
    s.at(6100).look(1, (2, 1), (1, 1))
    s.at(6900).begin(0)
    s.at(7200).look(0, (2, 1), (1, 1))
    s.at(7500).decide(2, 1, (2, 1, 0), "isr")
    s.at(8000).look(2, (2, 1), (2, 2))
    s.at(8005).ok(102, 1)
    log = [(0, 100), (1, 102)]
    return s.end(2, 1, {0: log, 1: log, 2: log}, 9000)
