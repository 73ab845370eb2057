"""Made-up histories: what clients of a sound cluster with transactions and groups see, and what bugs make of it.

They show what no bug of the built-in brokers does yet. This module draws a tale from a seed: a producer with sequence
numbers, transactions over two partitions, a consumer that reads what is committed, a group that commits; in the end
everything is read, and what lies on the disks is listed. A bug is a change of the tale, as small as the bug's own harm.
The timeline has nothing but how the replicas ended.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from harness.history.run_directory import Manifest
from harness.history.schema import HISTORY, REPLICA_LOGS, TIMELINE

Row = dict[str, Any]

_TOPIC = "ledger"
_PARTITIONS = (0, 1)
_NODES = (0, 1, 2)
_STEPS = 60
_MS = 1_000_000
_PLAIN, _WRITER, _OTHER, _READER, _GROUP, _LAST = range(6)
"""The processes: a producer, two that write transactions, a consumer, a group's member, and the final read."""


class Tale:
    """The tables of one run, step by step.

    Attributes:
        history: of the clients.
        logs: by partition, the records: offset, value (None: a marker), whose it is, with its producer's epoch and
            sequence number, the kind of a marker, and whether it may be read.
        sent: the completions of the sends of transactions that were committed, one list per transaction.
        aborted: the same of those that were aborted.
    """

    def __init__(self, seed: int) -> None:
        self.run = f"synthetic-{seed}"
        self.chance = random.Random(f"{seed}:tale")
        self.history: list[Row] = []
        self.logs: dict[int, list[Row]] = {p: [] for p in _PARTITIONS}
        self.sent: list[list[Row]] = []
        self.aborted: list[list[Row]] = []
        self._ops = 0
        self._values = 0
        self._positions = dict.fromkeys(_PARTITIONS, 0)
        for _ in range(_STEPS):
            self.chance.choice((self.send, self.send, self.transact, self.transact, self.read, self.commit))()
        self.read()
        for p in _PARTITIONS:
            self._poll(_LAST, [(p, one) for one in self.logs[p] if one["readable"]], final=True)

    # ---------------------------------------------------------------------------------------------------- clients

    def row(self, **columns: Any) -> Row:
        """One more row of the history."""
        usual = {"run": self.run, "txn": False, "mop": 0, "final": False}
        row = {**dict.fromkeys(column.name for column in HISTORY.columns), **usual, **columns}
        self.history.append(row)
        return row

    def op(self) -> int:
        """The next operation."""
        self._ops += 1
        return self._ops

    def append(
        self, p: int, value: int | None, process: int, *, readable: bool = True, control: str | None = None
    ) -> int:
        """Put a record of a process, or a marker for it, at the end of a log; returns its offset."""
        offset = len(self.logs[p])
        sequence = sum(one["process"] == process and one["control"] is None for one in self.logs[p])
        self.logs[p].append({
            "offset": offset, "value": value, "process": process, "epoch": 1, "readable": readable, "control": control,
            "sequence": sequence if control is None else None,
        })  # fmt: skip
        return offset

    def send(self) -> None:
        """The producer sends one record."""
        self._values += 1
        p, value = self.chance.choice(_PARTITIONS), self._values
        about = {**_place(p), "process": _PLAIN, "op": self.op(), "f": "send", "value": value, "acks": -1}
        self.row(**about, type="invoke")
        self.row(**about, type="ok", offset=self.append(p, value, _PLAIN))

    def transact(self) -> None:
        """A transaction with two records in each partition, which one time in five is aborted."""
        op, fails = self.op(), self.chance.random() < 0.2
        process = self.chance.choice((_WRITER, _OTHER))
        begun = []
        for mop, p in enumerate((*_PARTITIONS, *_PARTITIONS)):
            self._values += 1
            about = {**_place(p), "f": "send", "value": self._values, "acks": -1, "txn": True}
            begun.append(self.row(**about, process=process, op=op, mop=mop, type="invoke"))
        ended = []
        for row in begun:
            offset = self.append(row["partition"], row["value"], process, readable=not fails)
            known = {"type": "fail", "error": "aborted"} if fails else {"type": "ok", "offset": offset}
            ended.append(self.row(**{**row, **known}))
        for p in _PARTITIONS:
            self.append(p, None, process, readable=False, control="abort" if fails else "commit")
        (self.aborted if fails else self.sent).append(ended)

    def read(self) -> None:
        """The consumer is given what it has not been given yet."""
        found = [(p, one) for p in _PARTITIONS for one in self.logs[p][self._positions[p] :] if one["readable"]]
        self._positions = {p: len(self.logs[p]) for p in _PARTITIONS}
        self._poll(_READER, found)

    def _poll(self, process: int, found: list[tuple[int, Row]], *, final: bool = False) -> None:
        about = {"process": process, "op": self.op(), "f": "poll", "final": final, "isolation": "read_committed"}
        self.row(**about, type="invoke")
        for p, one in found:
            self.row(**about, **_place(p), type="ok", offset=one["offset"], value=one["value"], leader_epoch=0,
                     intact=True)  # fmt: skip
        if not found:
            self.row(**about, type="ok")

    def commit(self) -> None:
        """The group commits the consumer's position, and fetches it back."""
        p = self.chance.choice(_PARTITIONS)
        about = {**_place(p), "process": _GROUP, "group": "readers"}
        committed = {"offset": self._positions[p]}
        for f, invoked in (("commit", committed), ("committed", {})):
            op = self.op()
            self.row(**about, op=op, f=f, type="invoke", **invoked)
            self.row(**about, op=op, f=f, type="ok", **committed)

    # -------------------------------------------------------------------------------------------------------- end

    def rows_of(self, f: str, *, ended: bool = True) -> list[Row]:
        """The completions of an operation (or its invocations) about some partition, in order."""
        return [row for row in self.history if row["f"] == f and row["topic"] and (row["type"] != "invoke") == ended]

    def forget(self, gone: Callable[[Row], bool]) -> None:
        """Remove rows as if they had never been."""
        self.history = [row for row in self.history if not gone(row)]

    def after(self, row: Row, another: Row) -> None:
        """Put another row behind one."""
        at = next(at for at, one in enumerate(self.history) if one is row)
        self.history.insert(at + 1, another)

    def tables(self) -> tuple[list[Row], list[Row], list[Row]]:
        """History, timeline and replica logs."""
        self.row(process=-1, op=self.op(), type="info", f="close")
        for index, row in enumerate(self.history):
            row |= {"index": index, "time_ns": index * _MS}
        ends = [self._said(node, 1, "final", **self._state(node, p)) for p in _PARTITIONS for node in _NODES]
        return self.history, [*(self._said(node, 0, "started") for node in _NODES), *ends], self._copies()

    def _said(self, node: int, sequence: int, kind: str, **known: Any) -> Row:
        about = {
            "run": self.run, "node": node, "sequence": sequence, "incarnation": 0, "wall_ms": 0, "kind": kind,
            "time_ns": len(self.history) * _MS if sequence else 0,
        }  # fmt: skip
        return {**dict.fromkeys(column.name for column in TIMELINE.columns), **about, **known}

    def _state(self, node: int, p: int) -> Row:
        end = max((one["offset"] + 1 for one in self.logs[p]), default=0)
        return {
            **_place(p), "role": "follower" if node else "leader", "leader": 0, "leader_epoch": 0,
            "partition_epoch": 0, "high_watermark": end, "log_end_offset": end, "log_start_offset": 0,
            "isr": list(_NODES),
        }  # fmt: skip

    def _copies(self) -> list[Row]:
        blank = dict.fromkeys(column.name for column in REPLICA_LOGS.columns)
        return [
            {
                **blank, "run": self.run, "node": node, **_place(p), "offset": one["offset"], "leader_epoch": 0,
                "value": one["value"], "batch_base_offset": one["offset"], "batch_crc": one["value"] or -1,
                "intact": True, "producer_id": one["process"], "producer_epoch": one["epoch"],
                "sequence": one["sequence"], "control": one["control"], "transactional": one["process"] != _PLAIN,
            }
            for p in _PARTITIONS
            for node in _NODES
            for one in self.logs[p]
        ]  # fmt: skip


def _place(p: int) -> Row:
    return {"topic": _TOPIC, "partition": p}


def told(seed: int, bug: str) -> tuple[Manifest, tuple[list[Row], list[Row], list[Row]]]:
    """The history of ``seed`` on a cluster with ``bug``; empty: on a sound one."""
    tale = Tale(seed)
    if bug:
        HARM[bug](tale)
    manifest = Manifest(
        run=tale.run,
        scenario="synthetic",
        seed=seed,
        started_wall="1970-01-01T00:00:00+00:00",
        state="complete",
        generation="4.1",
        configuration={"imported": {"from": "a made-up history"}},
        guarantees={
            "min_insync_replicas": 2,
            "unclean_election": False,
            "idempotent_producers": True,
            "settles": True,
        },
    )
    return manifest, tale.tables()


# ------------------------------------------------------------------------------------------------------------- harm


def _marker(tale: Tale, sends: list[Row], p: int) -> Row:
    """The marker in partition ``p`` that closes the transaction of these sends."""
    (first, *_) = [row["value"] for row in sends if row["partition"] == p]
    at = next(one["offset"] for one in tale.logs[p] if one["value"] == first)
    process = tale.logs[p][at]["process"]
    return next(one for one in tale.logs[p][at:] if one["process"] == process and one["control"])


def _unheard(tale: Tale, sends: list[Row]) -> None:
    for row in sends:
        row |= {"type": "info", "offset": None, "error": "_TIMED_OUT"}


def _unread(tale: Tale, values: set[int]) -> None:
    tale.forget(lambda row: row["f"] == "poll" and row["value"] in values)


def _deliver(tale: Tale, after: Row, offset: int, process: int) -> None:
    """A consumer polls a record right after a row."""
    blank = dict.fromkeys(after)
    about = {**blank, "run": tale.run, "process": process, "op": tale.op(), "f": "poll", "txn": False, "mop": 0,
             "final": False, "isolation": "read_committed"}  # fmt: skip
    record = {"offset": offset, "value": after["value"], "leader_epoch": 0, "intact": True}
    tale.after(after, {**about, **_place(after["partition"]), **record, "type": "ok"})
    tale.after(after, {**about, "type": "invoke"})


def _transactions_interleave(tale: Tale) -> None:
    """Of two transactions that follow each other, in partition 1 the later one's record lies before the earlier's."""
    at = tale.chance.randrange(len(tale.sent) - 1)
    _swap(tale, tale.sent[at][1], tale.sent[at + 1][1])


def _transaction_reordered(tale: Tale) -> None:
    sends = tale.chance.choice(tale.sent)
    _swap(tale, sends[0], sends[2])


def _swap(tale: Tale, one: Row, other: Row) -> None:
    """Two records of one partition swap places, for every client and replica."""
    values = {one["value"]: other["value"], other["value"]: one["value"]}
    offsets = {one["value"]: other["offset"], other["value"]: one["offset"]}
    for row in tale.history:
        if row["value"] in values and row["f"] == "send" and row["offset"] is not None:
            row["offset"] = offsets[row["value"]]
        elif row["value"] in values and row["f"] == "poll":
            row["value"] = values[row["value"]]
    for record in tale.logs[one["partition"]]:
        record["value"] = values.get(record["value"], record["value"])


def _commit_of_another_generation(tale: Tale) -> None:
    """A member that was removed long ago commits its position, and the group fetches it."""
    fetched = tale.chance.choice([row for row in tale.rows_of("committed") if row["offset"]])
    last = next(row for row in reversed(tale.rows_of("commit")) if row["op"] < fetched["op"])
    late = {**last, "process": _LAST + 1, "op": tale.op(), "offset": last["offset"] - 1, "generation": 1}
    tale.after(last, late)
    tale.after(last, {**late, "type": "invoke"})
    fetched["offset"] = late["offset"]
    for generation, process in ((2, _LAST + 4), (1, _LAST + 3)):
        polls = {**dict.fromkeys(last), "run": tale.run, "group": last["group"], "process": process, "op": tale.op(),
                 "f": "poll", "txn": False, "mop": 0, "final": False}  # fmt: skip
        given = {**polls, **_place(last["partition"]), "f": "assigned", "type": "info", "generation": generation}
        for row in ({**polls, "type": "ok"}, given, {**polls, "type": "invoke"}):
            tale.after(tale.history[0], row)


def _commits_lost_with_the_coordinator(tale: Tale) -> None:
    tale.chance.choice(tale.rows_of("committed"))["offset"] = None


def _commit_beyond_the_log(tale: Tale) -> None:
    """The logs, and what was read last, end below the largest commit."""
    row = max(tale.rows_of("commit"), key=lambda row: int(row["offset"]))
    p, end = row["partition"], row["offset"] - 1
    tale.logs[p] = tale.logs[p][: max(end, 0)]
    tale.forget(lambda one: one["final"] and one["partition"] == p and one["offset"] >= end)


def _fetched_before_the_rebalance(tale: Tale) -> None:
    """The coordinator answers a new owner its group's commit, and the owner's client delivers a record before that."""
    known = [
        (answer, record)
        for answer in tale.rows_of("committed")
        for record in tale.logs[answer["partition"]][: answer["offset"]]
        if record["readable"]
    ]
    answer, record = tale.chance.choice(known)
    place, named = _place(answer["partition"]), {**dict.fromkeys(answer), "run": tale.run, "group": answer["group"]}
    polls = {**named, "process": _LAST + 3, "op": tale.op(), "f": "poll", "txn": False, "mop": 0, "final": False}
    asks = {**answer, "process": _LAST + 4, "op": tale.op()}
    rows = [
        {**polls, "type": "invoke"},
        {**polls, **place, "f": "assigned", "type": "info", "generation": 1},
        {**asks, "type": "invoke", "offset": None},
        asks,
        {**polls, **place, "type": "ok", "offset": record["offset"], "value": record["value"], "leader_epoch": 0,
         "intact": True},
    ]  # fmt: skip
    for row in reversed(rows):
        tale.after(answer, row)


def _retry_appended_again(tale: Tale) -> None:
    """A record lies at the end of its log for a second time, with the same sequence number, and is read so."""
    p = tale.chance.choice(_PARTITIONS)
    again = tale.chance.choice([one for one in tale.logs[p] if one["process"] == _PLAIN])
    offset = tale.append(p, again["value"], _PLAIN)
    tale.logs[p][offset]["sequence"] = again["sequence"]
    _read_last(tale, p, offset, again["value"])


def _read_last(tale: Tale, p: int, offset: int, value: int) -> None:
    last = [row for row in tale.rows_of("poll") if row["final"] and row["partition"] == p][-1]
    tale.after(last, {**last, "offset": offset, "value": value})


def _sequence_gap_appended(tale: Tale) -> None:
    """A record with an unknown outcome is missing, and those behind it in its sequence are not."""
    p = tale.chance.choice(_PARTITIONS)
    gone = tale.chance.choice([one for one in tale.logs[p] if one["process"] == _PLAIN][1:-1])
    value = gone["value"]
    gone |= {"value": None, "process": None, "epoch": None, "sequence": None}
    _unheard(tale, [row for row in tale.rows_of("send") if row["value"] == value])
    _unread(tale, {value})


def _zombie_producer(tale: Tale) -> None:
    """The producer's predecessor, which is fenced, gets a record in after all."""
    p, value = tale.chance.choice(_PARTITIONS), 1_000_000
    about = {**_place(p), "process": _LAST + 2, "op": tale.op(), "f": "send", "value": value, "acks": -1}
    for kind in ("invoke", "info"):
        tale.row(**about, type=kind)
    offset = tale.append(p, value, _PLAIN)
    tale.logs[p][offset] |= {"epoch": 0, "sequence": 0}
    _read_last(tale, p, offset, value)


def _log_of_another_cluster(tale: Tale) -> None:
    row = tale.chance.choice([row for row in tale.rows_of("poll") if row["value"]])
    row["value"] += 1_000_000


def _offset_written_twice(tale: Tale) -> None:
    p = tale.chance.choice(_PARTITIONS)
    one, other = tale.chance.sample(tale.logs[p][:-1], 2)
    tale.logs[p].append({**one, "offset": other["offset"], "process": None, "epoch": None, "sequence": None})


def _stale_acknowledgement(tale: Tale) -> None:
    sends = [row for row in tale.rows_of("send") if row["type"] == "ok" and row["partition"] == 0]
    row, other = tale.chance.sample(sends, 2)
    row["offset"] = other["offset"]


def _consumer_starves(tale: Tale) -> None:
    """No poll was given anything of the last quarter of partition 0."""
    end = len(tale.logs[0]) * 3 // 4
    tale.forget(lambda row: row["f"] == "poll" and row["partition"] == 0 and row["offset"] >= end)


HARM: Mapping[str, Callable[[Tale], None]] = MappingProxyType(
    {
        "transactions_interleave": _transactions_interleave,
        "transaction_reordered": _transaction_reordered,
        "commit_of_another_generation": _commit_of_another_generation,
        "commits_lost_with_the_coordinator": _commits_lost_with_the_coordinator,
        "commit_beyond_the_log": _commit_beyond_the_log,
        "fetched_before_the_rebalance": _fetched_before_the_rebalance,
        "retry_appended_again": _retry_appended_again,
        "sequence_gap_appended": _sequence_gap_appended,
        "zombie_producer": _zombie_producer,
        "log_of_another_cluster": _log_of_another_cluster,
        "offset_written_twice": _offset_written_twice,
        "stale_acknowledgement": _stale_acknowledgement,
        "consumer_starves": _consumer_starves,
    }
)
"""What each bug makes of a tale."""
