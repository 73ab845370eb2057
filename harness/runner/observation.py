"""Describes the outcome of a run in the words of :mod:`harness.outcome`, and compares it with the expected one.

The checkers' reference engine finds what was lost, diverged or duplicated; the brokers' disks have the logs; the
schedule log has what only the schedule could see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from checkers.reference import engine
from checkers.registry import KINDS
from checkers.verdicts.judge import judge
from checkers.verdicts.memory import views_in_memory
from checkers.verdicts.severity import Evidence
from checkers.views.history import History
from checkers.views.witnesses import Witnesses
from harness.checker import Anomaly, Outcome, Prediction, RunVerdict, Verdict
from harness.history.run_directory import Manifest, RunDirectory
from harness.history.schema import TABLES
from harness.model import NodeId, TopicPartition, partition_named
from harness.outcome import Word
from harness.parts import Parts
from harness.runner.archive import KeptArchive, Rows
from harness.runner.schedule_log import ScheduleLog
from harness.scenario import NUMBERED, Expectation, row_of
from harness.wire.messages.quorum import METADATA_TOPIC

_LOSS_WORDS = {Verdict.VIOLATION: Word.LOST, Verdict.DOCUMENTED: Word.DOCUMENTED, Verdict.WEAK: Word.WEAK}
"""The words for a loss, by the verdict on it."""

_OPEN_ENDED = frozenset({Word.STUCK, Word.EXITED, Word.UNAVAILABLE})
"""Words for why the final read is incomplete."""

_NO_EPOCH = "@-1"
_UNNAMED = "?"
_WHOLE = 2
"""So many entries that could be a row are written out."""

Log = tuple[str, ...]
"""A replica's log: ``m0@0`` for each record; the first begins with ``5:`` where the log starts at offset 5."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The evidence of a run.

    Attributes:
        predictions: that replace those of its manifest; None: those.
    """

    manifest: Manifest
    history: Rows
    timeline: Rows
    replica_logs: Rows
    faults: Rows
    schedule_log: ScheduleLog
    predictions: Sequence[Mapping[str, Any]] | None = None

    @classmethod
    def kept(cls, manifest: Manifest, archive: KeptArchive) -> Gathered:
        """From a run in memory."""
        tables = {name: _whole(name, archive.tables.get(name, ())) for name in ("timeline", "replica_logs", "faults")}
        return cls(manifest, archive.history, **tables, schedule_log=archive.schedule_log or ScheduleLog(()))

    @classmethod
    def recorded(cls, path: Path) -> Gathered:
        """From a run directory.

        Raises:
            InvalidRun: a table is missing or broken.
        """
        directory = RunDirectory.open(path)
        tables = {name: directory.read_table(name) for name in TABLES}
        return cls(directory.manifest(), **tables, schedule_log=ScheduleLog.from_json(directory.read_schedule_log()))


@dataclass(frozen=True, slots=True)
class Observed:
    """The outcome of a run.

    Attributes:
        words: in the order of :class:`Word`.
        logs: by partition and broker, from the disks.
        replicas: by partition, the brokers to which the controller has assigned it.
        invalid: why the run proves nothing, one sentence each.
        unexpected: anomalies that nothing predicted, documented or excused.
        unmet: predicted anomalies that did not occur.
    """

    words: tuple[Word, ...]
    logs: Mapping[TopicPartition, Mapping[NodeId, Log]]
    replicas: Mapping[TopicPartition, Sequence[NodeId]]
    invalid: tuple[str, ...]
    unexpected: tuple[Anomaly, ...]
    unmet: tuple[str, ...]


def observe(run: Gathered) -> Observed:
    """The outcome of ``run``."""
    views = views_in_memory(run.manifest, (run.history, run.timeline, run.replica_logs), run.faults)
    plain, predicted = _verdicts(run, views)
    words = (
        set(_from_checkers(plain.anomalies))
        | set(_from_schedule_log(run.schedule_log))
        | set(_from_logs(run, views.of(History)))
    )
    ordered = tuple(word for word in Word if word in words) or (Word.SAFE,)
    return Observed(
        ordered,
        final_logs(run.replica_logs, run.timeline, run.schedule_log),
        run.schedule_log.replicas,
        tuple(_invalid(run.manifest, predicted, words)),
        tuple(_unexpected(plain.anomalies, predicted.anomalies)),
        tuple(
            f"{one.kind} of {one.topic}-{one.partition} at {one.offset}" for one in predicted.unmet if not _is_any(one)
        ),
    )


def differences(expected: Expectation, observed: Observed) -> list[str]:
    """How the observed outcome differs from the expected one, one sentence each; empty: it does not.

    For a run that proves nothing, only why.
    """
    return list(observed.invalid) or [
        *_wrong_words(expected.outcome, observed.words),
        *_wrong_logs(expected, observed),
        *(f"unexpected {anomaly.kind}: {anomaly.why}" for anomaly in observed.unexpected),
        *(f"predicted and not found: {prediction}." for prediction in observed.unmet),
    ]


# ------------------------------------------------------------------------------------------------------------ words


def _verdicts(run: Gathered, views: Parts) -> tuple[RunVerdict, RunVerdict]:
    """The verdict without and with the predictions."""
    answers = engine.answer([views])
    witnesses = Witnesses(run.history, run.timeline, run.replica_logs, run.faults)
    evidence = Evidence(run.manifest, run.faults, predictions=run.predictions)
    plain, predicted = (
        judge(replace(evidence, predictions=foreseen), answers, witnesses, "reference")
        for foreseen in ((), _widened(evidence.foreseen))
    )
    return plain, predicted


def _widened(foreseen: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Where any lost write is foreseen, foresee lost reads, too: the word is the same."""
    any_loss = any(_is_any(Prediction(**one)) and _word(one["kind"]) is Word.LOST for one in foreseen)
    return [*foreseen, *({"kind": kind} for kind in KINDS if any_loss and _word(kind) is Word.LOST)]


def _word(kind: str) -> Word | None:
    """The word that a kind shows; None: none, or there is no such kind."""
    known = KINDS.get(kind)
    return None if known is None else known.in_scenarios.word


def _is_any(prediction: Prediction) -> bool:
    """Whether it means any anomaly of its kind, as a word does that needs one: a cluster is stuck without any, too."""
    where = (prediction.topic, prediction.partition, prediction.offset)
    return _word(prediction.kind) not in (None, Word.STUCK) and where == (None, None, None)


def _unexpected(plain: Iterable[Anomaly], predicted: Iterable[Anomaly]) -> Iterator[Anomaly]:
    lossy = {(anomaly.topic, anomaly.partition) for anomaly in plain if _word(anomaly.kind) is Word.LOST}
    for anomaly in predicted:
        follows = KINDS[anomaly.kind].in_scenarios.after_any_loss and (anomaly.topic, anomaly.partition) in lossy
        if anomaly.verdict is Verdict.VIOLATION and not follows:
            yield anomaly


def _from_checkers(anomalies: Iterable[Anomaly]) -> Iterator[Word]:
    for anomaly in anomalies:
        word = _word(anomaly.kind)
        if word is Word.LOST:
            yield from (_LOSS_WORDS[known] for known in _LOSS_WORDS if known is anomaly.verdict)
        elif word is Word.STUCK:
            # It is INDETERMINATE, for a coordinator takes its time; but the final read has waited for its end.
            yield word
        elif word is not None and anomaly.verdict is not Verdict.INDETERMINATE:
            yield word


def _from_schedule_log(schedule_log: ScheduleLog) -> Iterator[Word]:
    if schedule_log.unavailable or schedule_log.leaderless:
        yield Word.UNAVAILABLE
    if schedule_log.unsettled and not schedule_log.leaderless:
        yield Word.STUCK
    if schedule_log.exited:
        yield Word.EXITED
    for records in schedule_log.orders.values():
        offsets = [offset for _, offset in records if offset is not None]
        if any(later < earlier for earlier, later in pairwise(offsets)):
            yield Word.REORDERED


def _from_logs(run: Gathered, history: History) -> Iterator[Word]:
    """A group has skipped a record if the final read finds it below the group's position and no member was given it.

    A group whose position is beyond the end has not: its next fetch gets OFFSET_OUT_OF_RANGE.
    """
    for group in run.schedule_log.groups.values():
        for partition, position in group.position.items():
            found = history.final_read.get(partition, {})
            given = group.given.get(partition, set())
            passed = {value for offset in found if offset < position for value in found[offset] if value is not None}
            if found and position <= max(found) + 1 and passed - given:
                yield Word.SKIPPED


def _invalid(manifest: Manifest, verdict: RunVerdict, words: set[Word]) -> Iterator[str]:
    if manifest.state != "complete":
        yield manifest.why or f"The run's state is {manifest.state!r}."
    elif verdict.outcome is Outcome.INVALID:
        yield from verdict.reasons
    elif verdict.outcome is Outcome.INCONCLUSIVE and not words & _OPEN_ENDED:
        yield from verdict.reasons or ["The evidence does not suffice."]


def _wrong_words(expected: Sequence[Word], observed: Sequence[Word]) -> Iterator[str]:
    missing = [word.value for word in expected if word not in observed]
    surplus = [word.value for word in observed if word not in expected]
    if missing:
        yield f"predicted and not observed: {', '.join(missing)}."
    if surplus:
        yield f"observed and not predicted: {', '.join(surplus)}."


# ------------------------------------------------------------------------------------------------------------- logs


def final_logs(
    replica_logs: Rows, timeline: Rows, schedule_log: ScheduleLog
) -> dict[TopicPartition, dict[NodeId, Log]]:
    """The records of each replica's log; one without a name is ``?``, one that is not intact ends with ``!``.

    KRaft's metadata log is left out: its records are no workload's.
    """
    found: dict[TopicPartition, dict[NodeId, list[Mapping[str, Any]]]] = {}
    for row in timeline:
        if row["kind"] == "final" and row["topic"] not in (None, METADATA_TOPIC) and row["log_end_offset"] is not None:
            found.setdefault(_where(row), {}).setdefault(NodeId(row["node"]), [])
    for row in replica_logs:
        if row["topic"] != METADATA_TOPIC:
            found.setdefault(_where(row), {}).setdefault(NodeId(row["node"]), []).append(row)
    return {
        name: {node: _log(rows, schedule_log.names(name)) for node, rows in sorted(logs.items())}
        for name, logs in sorted(found.items())
    }


def _log(rows: Sequence[Mapping[str, Any]], names: Mapping[int, str]) -> Log:
    """The log without transaction markers."""
    ordered = sorted((row for row in rows if row.get("control") is None), key=lambda row: int(row["offset"]))
    entries = [
        f"{names.get(row['value'], _UNNAMED)}@{row['leader_epoch']}{'' if row['intact'] else '!'}" for row in ordered
    ]
    if ordered and ordered[0]["offset"] > 0:
        entries[0] = f"{ordered[0]['offset']}:{entries[0]}"
    return tuple(entries)


def spelled_out(entries: Iterable[str]) -> Log:
    """Entries of an expected log one by one: ``m1..m3@2`` is ``m1@2``, ``m2@2``, ``m3@2``."""
    return tuple(one for entry in entries for one in _spelled_out(entry))


def shortened(log: Log) -> str:
    """A log in one line: the inverse of :func:`spelled_out`; of equal records without a name how many there are."""
    runs: list[list[str]] = []
    for entry in log:
        if runs and (_follows(runs[-1][-1], entry) or _is_another(runs[-1][-1], entry)):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    return " ".join(map(_in_short, runs)) or "(empty)"


def _is_another(one: str, other: str) -> bool:
    return one == other and one.startswith(_UNNAMED)


def _in_short(run: Sequence[str]) -> str:
    if len(run) <= _WHOLE:
        return " ".join(run)
    return f"{len(run)}x{run[0]}" if run[0] == run[-1] else f"{run[0].split('@')[0]}..{run[-1]}"


def _spelled_out(entry: str) -> Iterator[str]:
    records, _, epoch = entry.partition("@")
    start, colon, records = records.rpartition(":")
    row = row_of(records)
    if row is None:
        yield entry
        return
    for name in row:
        yield f"{start}{colon}{name}@{epoch}"
        start = colon = ""


def _follows(one: str, other: str) -> bool:
    (first, _, epoch), (second, _, other_epoch) = one.partition("@"), other.partition("@")
    ends = NUMBERED.fullmatch(first.rpartition(":")[2]), NUMBERED.fullmatch(second)
    if epoch != other_epoch or ends[0] is None or ends[1] is None:
        return False
    return ends[0][1] == ends[1][1] and int(ends[0][2]) + 1 == int(ends[1][2])


def _wrong_logs(expected: Expectation, observed: Observed) -> Iterator[str]:
    """``all`` means every assigned replica: one without evidence does not agree."""
    for text, logs in expected.final_logs.items():
        name = partition_named(text)
        seen, assigned = observed.logs.get(name, {}), observed.replicas.get(name, ())
        for nodes, entries in logs.items():
            wanted = spelled_out(entries)
            for node in sorted(assigned) if nodes == "all" else [NodeId(int(one)) for one in nodes.split(",")]:
                log = seen.get(node)
                if log is None or not _same(log, wanted):
                    holds = "is not there" if log is None else f"is {shortened(log)}"
                    yield f"the log of {name} on broker {node} {holds}, not {shortened(wanted)}."
            if nodes == "all" and not assigned:
                yield f"the brokers of {name} are unknown."


def _same(log: Log, wanted: Log) -> bool:
    """Whether they are equal; records from before Kafka 0.11 have no epoch."""
    if all(entry.endswith(_NO_EPOCH) for entry in log):
        return [entry.partition("@")[0] for entry in log] == [entry.partition("@")[0] for entry in wanted]
    return log == wanted


def _whole(table: str, rows: Rows) -> list[dict[str, Any]]:
    """Rows with every column of the table."""
    names = [column.name for column in TABLES[table].columns]
    return [{name: row.get(name) for name in names} for row in rows]


def _where(row: Mapping[str, Any]) -> TopicPartition:
    return TopicPartition(row["topic"], row["partition"])
