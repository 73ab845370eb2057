"""Reference: which sends were refused (see :class:`harness.facts.Refusal`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from checkers.views.history import History
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import ALL, Row, where
from harness.facts import OUT_OF_SEQUENCE, UNDESERVED, Refusal, Standing
from harness.model import ProcessId, TopicPartition

_Producer = tuple[ProcessId, TopicPartition]

_ORDER = ("index", "value", "process", "time_ns")


def refusals(history: History, logs: ReplicaLogs) -> Iterator[Refusal]:
    """Those of both sorts."""
    sends = [row for row in history.operations if row["f"] == "send" and not row["txn"]]
    refused = [row for row in sends if row["type"] in ("fail", "info")]
    yield from _undeserved(history.run, [row for row in refused if row["error"] in UNDESERVED])
    of_producers: dict[_Producer, list[Row]] = defaultdict(list)
    for row in sends:
        of_producers[row["process"], where(row)].append(row)
    out_of_sequence = [row for row in refused if row["error"] in OUT_OF_SEQUENCE]
    found = [_unbroken(logs, row, of_producers[row["process"], where(row)]) for row in out_of_sequence]
    yield from dict.fromkeys(one for one in found if one is not None)


def _undeserved(run: str, refused: Sequence[Row]) -> Iterator[Refusal]:
    alike: dict[tuple[TopicPartition, str], list[Row]] = defaultdict(list)
    for row in refused:
        alike[where(row), row["error"]].append(row)
    for (place, error), group in alike.items():
        index, value, process, time_ns = min(tuple(row[name] for name in _ORDER) for row in group)
        yield Refusal(run, *place, error, process, value, index, time_ns, len(group))


def _unbroken(logs: ReplicaLogs, refused: Row, group: Sequence[Row]) -> Refusal | None:
    step = (refused["op"], refused["mop"])
    own = [row for row in group if (row["op"], row["mop"]) == step and row["type"] == "invoke"]
    before = [row for row in group if (row["op"], row["mop"]) != step and row["index"] < refused["index"]]
    ended = [row for row in before if row["type"] != "invoke"]
    if not own or not ended or len(before) != 2 * len(ended) or not all(map(_is_stored, ended)):
        return None
    last = max(ended, key=lambda row: (row["index"], row["offset"], row["value"], row["time_ns"]))
    held = logs.logged.get(where(last), {}).get(last["offset"], [])
    epochs = [row["leader_epoch"] for row in held if row["value"] == last["value"]]
    if not epochs:
        return None
    stood = Standing(max(epochs), last["offset"], last["time_ns"], min(row["time_ns"] for row in own))
    about = (refused["process"], refused["value"], refused["index"], refused["time_ns"])
    return Refusal(logs.run, *where(refused), refused["error"], *about, 1, stood)


def _is_stored(row: Row) -> bool:
    return row["type"] == "ok" and row["acks"] == ALL and row["offset"] is not None
