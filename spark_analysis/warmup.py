"""Warms Spark up: asks every question once, about a tiny run with every kind of operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from types import MappingProxyType
from typing import Any

from harness.history.arrow import write_rows
from harness.history.schema import TABLES, ColumnType, Table
from spark_analysis import session
from spark_analysis.demands import Damage, Demands
from spark_analysis.files import RunFiles, TableFile, local_files

RUN = "warm-up"

_HERE = {"topic": "ledger", "partition": 0}
_LEADER = {**_HERE, "role": "leader", "leader": 0, "leader_epoch": 0, "high_watermark": 2, "log_end_offset": 2}
_NOTHING: Mapping[ColumnType, Any] = MappingProxyType({"string": "", "int32": 0, "int64": 0, "bool": False})


def warm_up(rules: Sequence[str], master: str | None = None) -> Thread:
    """Start the JVM in the background and let it answer the questions of ``rules`` once, about a tiny run.

    The first questions are slow because the JVM loads and compiles what they need; a later check does not wait for
    that. It costs a processor some twenty seconds. Returns the thread; see :func:`session.in_background`.
    """
    return session.in_background(partial(_ask_once, rules, master))


def _ask_once(rules: Sequence[str], master: str | None) -> None:
    from spark_analysis.answers import ask  # noqa: PLC0415 - it imports Spark's functions, which takes a second

    with TemporaryDirectory() as directory:
        ask(session.session(master), RunFiles([RUN], tiny_run(Path(directory))), Demands(), Damage(), rules=rules)


def tiny_run(directory: Path) -> dict[str, list[TableFile]]:
    """Write the run's tables into ``directory``; returns their files by table."""
    tables = {"history": _history(), "timeline": _timeline(), "replica_logs": _replica_logs()}
    files = {}
    for name, rows in tables.items():
        path = directory / f"{name}.parquet"
        write_rows(TABLES[name], path, list(_whole(TABLES[name], rows)))
        files[name] = local_files([path])
    return files


def _whole(table: Table, rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    empty = {column.name: _NOTHING[column.type] for column in table.columns if not column.nullable}
    numbered = empty.keys() & {"index", "sequence", "time_ns"}
    for position, row in enumerate(rows):
        yield {**empty, **dict.fromkeys(numbered, position), **row, "run": RUN}


def _history() -> Iterator[dict[str, Any]]:
    yield from _operation(0, {"f": "subscribe", "group": "readers", **_HERE})
    for value in range(2):
        sent = {"f": "send", "txn": True, "value": value, "acks": -1, **_HERE}
        yield from _operation(1 + value, sent, {"offset": value})
    read = {"offset": 0, "value": 0, "leader_epoch": 0, "intact": True, **_HERE}
    yield from _operation(3, {"f": "poll"}, read)
    yield from _operation(4, {"f": "commit", "group": "readers", "offset": 1, **_HERE})
    yield from _operation(5, {"f": "committed", "group": "readers", **_HERE}, {"offset": 0})
    yield from _operation(6, {"f": "poll", "final": True}, {**read, "offset": 1, "value": 1})
    yield {"type": "ok", "f": "close"}


def _operation(
    op: int, asked: Mapping[str, Any], answered: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[dict[str, Any]]:
    yield {"op": op, "type": "invoke", **asked}
    yield {"op": op, "type": "ok", **asked, **answered}


def _timeline() -> Iterator[dict[str, Any]]:
    yield {"kind": "election", "detail": '{"clean": false}', **_HERE, "leader": 0, "leader_epoch": 0}
    yield {"kind": "state", "isr": [0, 1], **_LEADER}
    yield {"kind": "truncation", "detail": '{"from_offset": 0, "to_offset": 1}', **_HERE, "leader_epoch": 0}
    yield {"kind": "final", "log_start_offset": 0, "isr": [0, 1], **_LEADER}


def _replica_logs() -> Iterator[dict[str, Any]]:
    for node in range(2):
        yield {"node": node, **_HERE, "offset": 1, "value": 1, "intact": True, "transactional": True}
