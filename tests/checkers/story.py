"""A toy cluster that writes the tables of a run, so that a test can tell a story and then falsify a detail.

Three nodes replicate every partition, in a world without latency: a write is appended by the leader, copied to the
followers in the ISR, committed and acknowledged. What goes wrong is what the test says.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.history.arrow import write_rows
from harness.history.run_directory import Manifest, RunDirectory
from harness.history.schema import HISTORY
from harness.model import NO_NODE

Row = dict[str, Any]
NODES = (0, 1, 2)
CONTROLLER = 100
GUARANTEES = {"min_insync_replicas": 2, "unclean_election": False}


class Partition:
    """One partition: who leads it, and what each node's log holds."""

    def __init__(self) -> None:
        self.leader = 0
        self.epoch = 0
        self.isr = set(NODES)
        self.logs: dict[int, list[tuple[int, int | None]]] = {node: [] for node in NODES}
        self.marks = dict.fromkeys(NODES, 0)
        self.starts = dict.fromkeys(NODES, 0)


class Story:
    """The tables of a run, told step by step. ``history``, ``timeline``, ``logs`` and ``faults`` may be falsified.

    ``workload``: what ``run.json`` says of the load, if anything. ``broken_off``: the lives, by node and incarnation,
    whose timelines break off without a final row. ``orders``: the DeleteRecords that were sent; None: the run does not
    say.
    """

    def __init__(self, run: str = "r", partitions: int = 1) -> None:
        self.run = run
        self.history: list[Row] = []
        self.timeline: list[Row] = []
        self.logs: list[Row] = []
        self.faults: list[Row] = []
        self.scenario: Row = {}
        self.workload: Row = {}
        self.orders: list[Row] | None = None
        self.broken_off: set[tuple[int, int]] = set()
        self.partitions = {p: Partition() for p in range(partitions)}
        self.incarnations = dict.fromkeys((*NODES, CONTROLLER, NO_NODE), 0)
        self.sequences = dict.fromkeys((*NODES, CONTROLLER, NO_NODE), 0)
        self.now = 0
        self.ops = itertools.count()
        self.values = itertools.count()
        for node in (*NODES, CONTROLLER):
            self.say(node, "started", None)
        for node in NODES:
            self.say(CONTROLLER, "session", None, {"broker": node, "change": "registered"})
        for p, node in itertools.product(self.partitions, NODES):
            self.state(node, p)

    # ------------------------------------------------------------------------------------------------ single rows

    def row(self, **columns: Any) -> Row:
        self.now += 1_000_000
        usual = {
            "run": self.run,
            "index": len(self.history),
            "time_ns": self.now,
            "txn": False,
            "mop": 0,
            "final": False,
        }
        columns = {**usual, **columns}
        row = dict.fromkeys(c.name for c in HISTORY.columns) | columns
        self.history.append(row)
        return row

    def say(self, node: int, kind: str, p: int | None, detail: Row | None = None, **columns: Any) -> Row:
        self.now += 1_000_000
        row: Row = {
            "run": self.run, "node": node, "sequence": self.sequences[node], "incarnation": self.incarnations[node],
            "time_ns": self.now, "wall_ms": 0, "kind": kind, "topic": None if p is None else "ledger", "partition": p,
            "role": None, "leader": None, "leader_epoch": None, "partition_epoch": None, "high_watermark": None,
            "log_end_offset": None, "log_start_offset": None, "isr": None,
            "detail": None if detail is None else json.dumps(detail), **columns,
        }  # fmt: skip
        self.sequences[node] += kind != "final"
        self.timeline.append(row)
        return row

    def state(self, node: int, p: int = 0, kind: str = "state") -> Row:
        part = self.partitions[p]
        return self.say(
            node, kind, p,
            role="leader" if part.leader == node else "follower", leader=part.leader, leader_epoch=part.epoch,
            partition_epoch=0, high_watermark=part.marks[node], log_end_offset=len(part.logs[node]),
            log_start_offset=part.starts[node], isr=sorted(part.isr),
        )  # fmt: skip

    # ---------------------------------------------------------------------------------------------------- clients

    def send(
        self, p: int = 0, acks: int = -1, result: str = "ok", *, append: bool = True, commit: bool = True,
        copies: Iterable[int] | None = None, process: int = 0, offset: int | None = -1, error: str = "timeout",
    ) -> int:  # fmt: skip
        """Send the next value; returns it. ``copies``: the followers that get it; None: those in the ISR.

        ``error``: of a send whose ``result`` is not ``ok``.
        """
        part, value, op = self.partitions[p], next(self.values), next(self.ops)
        about = {"process": process, "op": op, "f": "send", "topic": "ledger", "partition": p, "value": value}
        self.row(**about, type="invoke", acks=acks)
        at = len(part.logs[part.leader])
        if append:
            self.append(p, value, part.isr - {part.leader} if copies is None else copies, commit=commit)
        if result != "invoke":
            known = (at if offset == -1 else offset) if result == "ok" else None
            self.row(**about, type=result, acks=acks, offset=known, error=None if result == "ok" else error)
        return value

    def append(self, p: int, value: int | None, copies: Iterable[int], *, commit: bool = True) -> None:
        part = self.partitions[p]
        for node in (part.leader, *sorted(copies)):
            part.logs[node].append((part.epoch, value))
            self.state(node, p)
        if commit:
            self.commit(p)

    def commit(self, p: int = 0, to: int | None = None) -> None:
        """The leader's high watermark rises to ``to`` (None: its log end), and the ISR learns of it."""
        part = self.partitions[p]
        for node in (part.leader, *sorted(part.isr - {part.leader})):
            end = len(part.logs[part.leader]) if to is None else to
            part.marks[node] = max(part.marks[node], min(end, len(part.logs[node])))
            self.state(node, p)

    def poll(self, process: int, offsets: Sequence[int] = (), p: int = 0, *, final: bool = False) -> list[Row]:
        """A poll that delivers these offsets of the leader's log; returns their rows."""
        op = next(self.ops)
        about: Row = {"process": process, "op": op, "f": "poll", "final": final}
        self.row(**about, type="invoke")
        log = self.partitions[p].logs[self.partitions[p].leader]
        rows = [
            self.row(
                **about, type="ok", topic="ledger", partition=p, offset=offset, leader_epoch=log[offset][0],
                value=log[offset][1], intact=log[offset][1] is not None,
            )
            for offset in offsets
        ]  # fmt: skip
        return rows or [self.row(**about, type="ok")]

    # ---------------------------------------------------------------------------------------------------- brokers

    def elect(self, node: int, p: int = 0, *, clean: bool = True) -> None:
        """``node`` leads from now on; the others cut what it does not have and copy what it has."""
        part = self.partitions[p]
        previous, part.leader, part.epoch = part.leader, node, part.epoch + 1
        said = {"clean": clean, "elected_from_isr": clean, "previous_leader": previous,
                "controller_epoch": self.controller_epoch}  # fmt: skip
        self.say(CONTROLLER, "election", p, said, leader=node, leader_epoch=part.epoch,
                 partition_epoch=3 * part.epoch, isr=sorted(part.isr | {node} if clean else {node}))  # fmt: skip
        self.state(node, p)
        for other in NODES:
            if other != node:
                self.cut(other, len(part.logs[node]), p)
                part.logs[other] = list(part.logs[node])
                self.state(other, p)

    def cut(self, node: int, to: int, p: int = 0) -> None:
        """``node`` truncates its log to ``to``."""
        part = self.partitions[p]
        end = len(part.logs[node])
        if to < end:
            del part.logs[node][to:]
            part.marks[node] = min(part.marks[node], to)
            self.say(node, "truncation", p, {"from_offset": end, "to_offset": to, "reason": "leader said so"})
            self.state(node, p)

    def overwrite(self, p: int = 0, *, heard: bool, clean: bool) -> None:
        """Somebody leads whose last record is of the epoch before, where one of the present epoch was committed.

        ``heard``: by what it says it may have got its record in that epoch.
        """
        part = self.partitions[p]
        old = part.leader
        stale, new = (node for node in NODES if node != old)
        self.cut(stale, min(map(len, part.logs.values())), p)
        for node in NODES:
            self.cut(node, len(part.logs[stale]), p)
        self.send(p, result="info", copies=(stale,), commit=False)
        log = list(part.logs[stale])
        part.leader, part.epoch, part.isr = new, part.epoch + 1, {old, new}
        self.state(new, p)
        self.cut(old, len(log) - 1, p)
        self.send(p, copies=(old,))
        if heard:
            self.cut(stale, len(log) - 1, p)
            part.logs[stale] = log
            self.state(stale, p)
        part.isr = set(NODES)
        self.elect(stale, p, clean=clean)

    def delete(self, before: int, p: int = 0, nodes: Iterable[int] | None = None) -> None:
        """The leader deletes what lies before an offset, and then the others do; or ``nodes`` do, in this order."""
        part = self.partitions[p]
        others = [node for node in NODES if node != part.leader]
        for node in (part.leader, *others) if nodes is None else nodes:
            said = {"from_offset": part.starts[node], "to_offset": before}
            part.starts[node] = before
            reason = "delete_records" if node == part.leader else "leader"
            self.state(node, p, "log_start")["detail"] = json.dumps(said | {"reason": reason})
            part.marks[node] = max(part.marks[node], before)
            self.state(node, p)

    def restart(self, node: int) -> None:
        """``node`` was killed and is started again."""
        self.incarnations[node] += 1
        self.sequences[node] = 0
        self.say(node, "started", None)
        for p in self.partitions:
            self.state(node, p)

    def restart_controller(self) -> None:
        """The controller was killed and is started again; :meth:`controller_epoch` is higher from here on."""
        self.incarnations[CONTROLLER] += 1
        self.sequences[CONTROLLER] = 0
        self.say(CONTROLLER, "started", None)

    @property
    def controller_epoch(self) -> int:
        """Of the controller as it lives now."""
        return 1 + self.incarnations[CONTROLLER]

    def fault(self, name: str = "cut", **columns: Any) -> None:
        """A fault that worked and was healed, unless ``columns`` say otherwise; a name that is taken gets a number."""
        t, same = self.now, [known for known in self.faults if known["fault"].partition(" ")[0] == name]
        name = f"{name} {len(same)}" if same else name
        whole: Row = {
            "run": self.run, "fault": name, "kind": "partition", "nodes": ["1"], "parameters": "{}", "aim": "{}",
            "aimed_ns": t, "injected_ns": t + 1, "proven_ns": t + 2, "proof": "no answer", "healed_ns": t + 3,
            "heal_proven_ns": t + 4, "heal_proof": "an answer",
        }  # fmt: skip
        self.faults.append(whole | columns)

    # -------------------------------------------------------------------------------------------------------- end

    def finish(self, *, read: bool = True) -> Story:
        """The final read, the final states, the replicas' logs, and the ``close`` row."""
        for p, part in self.partitions.items():
            if read:
                self.poll(900, range(part.starts[part.leader], part.marks[part.leader]), p, final=True)
            for node in NODES:
                self.state(node, p, "final")
                self.logs += [
                    {
                        "run": self.run, "node": node, "topic": "ledger", "partition": p, "offset": offset,
                        "leader_epoch": epoch, "value": value, "batch_base_offset": offset,
                        "batch_crc": epoch * 1000 + (value or 0), "intact": True,
                    }
                    for offset, (epoch, value) in enumerate(part.logs[node])
                    if offset >= part.starts[node]
                ]  # fmt: skip
        self.row(process=-1, op=next(self.ops), type="ok", f="close")
        return self

    def forget(self, *rows: Row) -> None:
        """Remove rows from the history as if they had never been recorded."""
        gone = {id(row) for row in rows}
        self.history = [row for row in self.history if id(row) not in gone]
        for index, row in enumerate(self.history):
            row["index"] = index

    def final_rows(self, p: int = 0) -> list[Row]:
        """The rows of the final read of a partition."""
        return [r for r in self.history if r["final"] and r["partition"] == p]

    def collected(self, *, sampled: bool) -> list[Row]:
        """The timeline with the end marks that the collector of a complete one writes."""
        return [*self.timeline, *(() if sampled else self._ends())]

    def _ends(self) -> Iterator[Row]:
        """The final rows of lives that have none, which are about no partition, but of those that break off."""
        of_nodes = [row for row in self.timeline if row["node"] != NO_NODE]
        rows = sorted(of_nodes, key=lambda row: (row["node"], row["incarnation"], row["sequence"]))
        lives = {(row["node"], row["incarnation"]): row for row in rows}
        ended = {(row["node"], row["incarnation"]) for row in rows if row["kind"] == "final"}
        for life in sorted(set(lives) - ended - self.broken_off):
            last = lives[life]
            kept = {name: last[name] for name in ("run", "node", "incarnation", "time_ns", "wall_ms")}
            yield dict.fromkeys(last) | kept | {"kind": "final", "sequence": last["sequence"] + 1}

    def manifest(self, **more: Any) -> Manifest:
        """What ``run.json`` says of the run."""
        topic = {"name": "ledger", "partitions": len(self.partitions), "replication_factor": len(NODES)}
        configuration = {"scenario": {"cluster": {"brokers": len(NODES)}, "topics": [topic], **self.scenario}}
        if self.workload:
            configuration["workload"] = self.workload
        known: Row = {"state": "complete", "guarantees": GUARANTEES, "configuration": configuration}
        known |= {"orders": self.orders, **more}
        return Manifest(self.run, "story", 1, "2025-01-01T00:00:00+00:00", **known)

    def write(self, path: Path, **manifest: Any) -> Path:
        """Write the run directory."""
        told = self.manifest(**manifest)
        directory = RunDirectory.create(path, told)
        write_rows(HISTORY, path / "history" / "part-00000.parquet", self.history)
        directory.write_table("timeline", self.collected(sampled=told.guarantees.get("timeline") == "sampled"))
        directory.write_table("replica_logs", self.logs)
        directory.write_table("faults", self.faults)
        directory.finish(told.state, 1.0)
        return path
