"""The evidence is complete; without that, the other promises prove nothing.

* The history's index runs from 0 without a gap or a repetition, time rises with it, every completion follows its
  invocation and is about the same thing, no send begins or ends twice and no poll begins twice, no value is sent twice
  to one partition, every row names what it is about, and the last is the only ``close`` row.
* Every node, replica and fault is accounted for; see ``checkers.completeness.nodes_are_accounted``.
* Every table is there, every file of it is whole, and ``run.json`` has the state ``complete``.

A breach is no anomaly of the system under test: it makes the run ``INVALID``, with a sentence that names the gap. An
operation without a completion is no breach: its outcome is unknown, and it counts as ``info``.

The run is ``INCONCLUSIVE`` when nothing was acknowledged; when nothing was read; when no member of a group was ever
given a partition; when a user's program has put out nothing; when the scenario asks for clients to be killed, and none
was; when the healed cluster did not recover and none of its nodes can be probed; when the final read of a partition did
not reach the high watermark of its final leader (markers and aborted records at the end apart), or that leader never
committed the end of its own log; and when an acknowledgement with acks=all is above every leader's high watermark
without being known to be unjustified. In a sampled timeline such acknowledgements of lost records do not count: the
leader that gave them may have gone before a sample was taken. An imported history has no brokers; there the final read
of a partition must have reached everything that any poll was given, or have gone on until it was given nothing any
more, and no process may have begun later and stopped earlier, see :mod:`checkers.views.final_reads`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from checkers.hw_regression import claims_replication, is_accounted, is_justified, was_passed
from checkers.views.history import History
from checkers.views.metadata import Metadata
from checkers.views.recorded_load import recorded_load
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import ALL, NO_ACKS, Row, is_malformed, where
from checkers.views.timeline import Timeline
from checkers.views.watermark_history import WatermarkHistory
from harness.findings import COUNTS, GAPS_KEPT, HistoryGap, NodeLife, PartitionEnd, ReplicaEnd
from harness.history.run_directory import Manifest


def history_gaps(history: History) -> list[HistoryGap]:
    """Reference: which rows of the history are missing."""
    indexes = sorted(int(row["index"]) for row in history.rows)
    gaps = [(a + 1, b) for a, b in pairwise([-1, *indexes]) if b > a + 1]
    return [HistoryGap(history.run, *gap, len(gaps)) for gap in gaps[:GAPS_KEPT]]


def lives(timeline: Timeline) -> list[NodeLife]:
    """Reference: the incarnations of every node."""
    found: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for row in timeline.rows:
        own, final = found.setdefault((row["node"], row["incarnation"]), ([], []))
        (final if row["kind"] == "final" else own).append(row["sequence"])
    return [
        NodeLife(timeline.run, *life, len(own), len(set(own)), max(own, default=-1) + 1, min(final, default=None))
        for life, (own, final) in sorted(found.items())
    ]


def replicas(timeline: Timeline, logs: ReplicaLogs) -> list[ReplicaEnd]:
    """Reference: how every replica ended, and what its log holds."""
    finals: dict[tuple[int, str, int], list[Row]] = {}
    offsets: dict[tuple[int, str, int], list[int]] = {}
    for row in timeline.rows:
        if row["kind"] == "final" and row["topic"] is not None:
            finals.setdefault((row["node"], *where(row)), []).append(row)
    for row in logs.rows:
        offsets.setdefault((row["node"], *where(row)), []).append(row["offset"])
    return [
        _replica(timeline.run, key, finals.get(key, []), offsets.get(key, [])) for key in sorted({*finals, *offsets})
    ]


def _replica(run: str, key: tuple[int, str, int], finals: list[Row], offsets: list[int]) -> ReplicaEnd:
    def bound(name: str) -> int | None:
        return max((row[name] for row in finals if row[name] is not None), default=None)

    return ReplicaEnd(
        run, *key,
        bound("high_watermark"), bound("log_end_offset"), bound("log_start_offset"),
        len(offsets), len(set(offsets)), min(offsets, default=None), max(offsets, default=None),
    )  # fmt: skip


def counts(history: History, timeline: Timeline, metadata: Metadata) -> dict[str, int]:
    """Reference: how much there is of everything, by the names of ``answer.COUNTS``."""
    found: Counter[str] = Counter(dict.fromkeys(COUNTS, 0))
    for row in history.rows:
        found.update(_counted(row))
    closes = [row["index"] for row in history.rows if row["f"] == "close"]
    if closes:
        found["rows_after_close"] = max(row["index"] for row in history.rows) - max(closes)
    found.update(_disorder(history.rows))
    found.update(_mismatched(history.rows))
    found["resent_values"] = len(history.resent)
    claims, watermarks = [send for send in history.sends if claims_replication(send)], WatermarkHistory(timeline.rows)
    told = {place: metadata.highest(place) for place in {send.where for send in claims}}
    found["acked_below_high_watermark"] = sum(
        is_justified(timeline, send, watermarks) or told[send.where] > (send.offset or 0) for send in claims
    )
    found["acked_unaccounted"] = sum(
        not was_passed(timeline, send) and not is_accounted(timeline, send) for send in claims
    )
    return dict(found)


def _disorder(history: Sequence[Row]) -> dict[str, int]:
    times: dict[int, int] = {}
    begun: dict[int, int] = {}
    for row in history:
        times[row["index"]] = max(row["time_ns"], times.get(row["index"], row["time_ns"]))
        if row["type"] == "invoke":
            begun[row["op"]] = min(row["index"], begun.get(row["op"], row["index"]))
    completions = [row for row in history if row["type"] != "invoke" and row["f"] != "close"]
    steps = [row for row in history if row["f"] == "send" or (row["f"], row["type"]) == ("poll", "invoke")]
    return {
        "repeated_rows": len(history) - len(times),
        "rows_back_in_time": sum(row["time_ns"] < times.get(row["index"] - 1, row["time_ns"]) for row in history),
        "early_completions": sum(begun.get(row["op"], row["index"]) >= row["index"] for row in completions),
        "repeated_steps": len(steps) - len({(row["op"], row["mop"], row["type"] == "invoke") for row in steps}),
        "malformed_rows": sum(is_malformed(row) for row in history),
    }


def _mismatched(history: Sequence[Row]) -> dict[str, int]:
    steps: dict[tuple[int, int], tuple[set[tuple[object, ...]], list[Row]]] = defaultdict(lambda: (set(), []))
    for row in history:
        if row["f"] == "send" and not is_malformed(row):
            begun, ended = steps[row["op"], row["mop"]]
            if row["type"] == "invoke":
                begun.add((*where(row), row["value"]))
            else:
                ended.append(row)
    ends = [(begun, row) for begun, ended in steps.values() for row in ended if begun]
    others = [row["index"] for begun, row in ends if (*where(row), row["value"]) not in begun]
    return {"mismatched_ends": len(others), "mismatched_row": min(others, default=0)}


_COUNTED = {
    ("send", "invoke"): "sends",
    ("send", "fail"): "sends_fail",
    ("poll", "invoke"): "polls",
    ("subscribe", "invoke"): "subscriptions",
    ("assigned", "info"): "partitions_given",
    ("crash", "invoke"): "crashes",
    ("reached", "invoke"): "programs",
}
_ACKS = {ALL: "acks_all", 1: "acks_leader", 0: "acks_none"}


def _counted(row: Row) -> Iterator[str]:
    yield "history_rows"
    if row["f"] == "send" and row["acks"] in _ACKS:
        yield _ACKS[row["acks"]]
    if (name := _COUNTED.get((row["f"], row["type"]))) is not None:
        yield name
    match row["f"], row["type"]:
        case "close", _:
            yield "close_rows"
        case "output", "ok" if row["final"]:
            yield "outputs"
        case "send", "ok":
            yield from _acknowledged(row)
        case "poll", "ok":
            if row["final"]:
                yield "final_poll_rows"
            if row["topic"] is not None:
                yield "final_records" if row["final"] else "polled_records"


def _acknowledged(row: Row) -> Iterator[str]:
    yield "sends_ok"
    if row["acks"] == ALL and row["offset"] is not None:
        yield "acked_all"
    if row["acks"] not in (None, NO_ACKS) and row["offset"] is None and not row["txn"]:
        yield "acked_nowhere"


# ------------------------------------------------------------------------------------------------- what is missing


def unfinished(manifest: Manifest) -> Iterator[str]:
    """A sentence when the run did not come to its end, which explains much of what is missing."""
    if manifest.state != "complete":
        why = f" {manifest.why}" if manifest.why else ""
        yield f"The run's state is {manifest.state!r}, not 'complete': it did not come to its end.{why}"
    elif manifest.why:
        yield f"The run's state is 'complete', and run.json says why it did not come to its end: {manifest.why}"


def invalid(history: Sequence[HistoryGap], numbers: Mapping[str, int]) -> Iterator[str]:
    """One sentence for everything about the history that makes the run prove nothing."""
    for gap in history:
        yield f"The history has a gap: rows {gap.first} to {gap.end - 1} are missing."
    if history and history[0].total > len(history):
        yield f"These are the first {len(history)} of {history[0].total} gaps in the history."
    yield from _disordered(numbers)
    if not numbers["close_rows"]:
        yield f"The history has no close row: it breaks off after {numbers['history_rows']} rows."
    elif numbers["close_rows"] > 1 or numbers["rows_after_close"]:
        closes, after = numbers["close_rows"], numbers["rows_after_close"]
        yield f"The history has {closes} close rows and {after} rows after the last."


def unplaced(manifest: Manifest, numbers: Mapping[str, int]) -> Iterator[str]:
    """A sentence when acknowledgements lack the offset that a broker returns with them, unless acks=0 was asked for.

    They may where an idempotent producer has several batches under way, which a workload says, and a schedule may do:
    see :attr:`harness.workload.WorkloadParameters.acknowledges_in_turn`. Which fields the clients of an imported
    history recorded is not known.
    """
    if numbers["acked_nowhere"] and "target" in manifest.configuration and not _may_lack_offsets(manifest):
        yield (
            f"{numbers['acked_nowhere']} acknowledgements of acks=all or acks=1 name no offset, as each has to: what "
            "they promise cannot be checked."
        )


def placed_anywhere(manifest: Manifest, numbers: Mapping[str, int]) -> Iterator[str]:
    """A sentence about acknowledgements that need not name an offset, and do not."""
    if numbers["acked_nowhere"] and _may_lack_offsets(manifest):
        yield (
            f"{numbers['acked_nowhere']:,} acknowledgements name no offset, as those of pipelined batches need not: "
            "that the record is in its partition was asked, and not where."
        )


def _may_lack_offsets(manifest: Manifest) -> bool:
    load = recorded_load(manifest.configuration)
    steps = manifest.configuration.get("scenario", {}).get("schedule") or ()
    repeats = any((step.get("send") or {}).get("idempotent") for step in steps)
    return repeats or (load is not None and not load.acknowledges_in_turn)


def idle(manifest: Manifest, numbers: Mapping[str, int]) -> Iterator[str]:
    """A sentence when members of groups were there and none of them was ever given a partition.

    Such a run tries no promise to groups. A history that another tool recorded need not name rebalances.
    """
    if numbers["subscriptions"] and not numbers["partitions_given"] and "target" in manifest.configuration:
        yield "Clients subscribed as members of groups, and none of them was ever given a partition."


def silent(manifest: Manifest, numbers: Mapping[str, int]) -> Iterator[str]:
    """A sentence when a user's program was there and has put out nothing; it quotes the last that the program said."""
    if numbers["programs"] and not numbers["outputs"]:
        said = manifest.program.get("said")
        last = f" The last that it said: {said}" if said else ""
        yield f"The user's program has put out nothing that could be read, so nothing is known of what it does.{last}"


def unrecovered(manifest: Manifest, numbers: Mapping[str, int]) -> Iterator[str]:
    """A sentence when the healed cluster did not recover, and no node could be probed for what is to blame."""
    del numbers
    if manifest.unrecovered:
        first, *more = manifest.unrecovered
        others = f", and {len(more)} more" if more else ""
        yield f"The healed cluster did not recover, and whether it is to blame is not known: {first}{others}."


def unharmed(manifest: Manifest, numbers: Mapping[str, int]) -> Iterator[str]:
    """A sentence when the scenario asks the workload to kill clients, and it has killed none."""
    load = recorded_load(manifest.configuration)
    if load is not None and load.must_kill_clients and not numbers["crashes"]:
        yield "The workload was to kill clients, and has killed none, so what one leaves behind was not tried."


def _disordered(numbers: Mapping[str, int]) -> Iterator[str]:
    meanings = {
        "repeated_rows": "has an index that another row has",
        "rows_back_in_time": "is older than the row before it",
        "early_completions": "completes an operation that was not invoked before",
        "repeated_steps": "begins or ends a send, or begins a poll, for the second time; mend what writes them twice",
        "malformed_rows": "does not say what it is about",
    }
    for name, what in meanings.items():
        if numbers[name]:
            yield f"The history is not one: of {numbers[name]} rows each {what}."
    if numbers["mismatched_ends"]:
        row, more = numbers["mismatched_row"], numbers["mismatched_ends"] - 1
        others = f", and so do {more} more" if more else ""
        yield f"The history is not one: row {row} ends a send that began with another value or partition{others}."
    if numbers["resent_values"]:
        remedy = "give every send a value of its own, or reads cannot be matched to sends"
        yield f"The history is not one: values are sent more than once, {numbers['resent_values']} in all; {remedy}."


def inconclusive(
    ends: Sequence[PartitionEnd], unaccounted: int, numbers: Mapping[str, int], *, brokers: bool = True
) -> Iterator[str]:
    """One sentence for each open question.

    Args:
        ends: how the partitions ended.
        unaccounted: how many acknowledgements with acks=all are above every known high watermark of a leader.
        numbers: how much there is of everything.
        brokers: whether brokers were observed, as they were not for an imported history.
    """
    if not numbers["sends_ok"]:
        yield "Nothing was acknowledged, so nothing could be lost."
    if not numbers["final_records"] and not numbers["polled_records"]:
        yield "Nothing was read."
    if brokers and unaccounted:
        yield f"{unaccounted} acknowledgements with acks=all are above every high watermark that is known of a leader."
    if not numbers["final_poll_rows"]:
        yield "There is no final read."
        return
    for end in ends:
        yield from _open_end(end) if brokers else _short_read(end)


def _short_read(end: PartitionEnd) -> Iterator[str]:
    if end.polled > end.reached and not end.exhausted:
        place = f"{end.topic}-{end.partition}"
        given = f"an earlier poll was given offset {end.polled - 1}"
        yield f"The final read of {place} ended at {end.reached}, and {given}."
    if end.short is not None:
        later = f"a later process of the final read was given nothing behind {end.short} for a moment"
        yield f"The final read of {end.topic}-{end.partition} ended at {end.reached}, and {later}."


def _open_end(end: PartitionEnd) -> Iterator[str]:
    place = f"{end.topic}-{end.partition}"
    if end.high_watermark is None:
        yield f"{place} has no final leader, so whether its final read, up to {end.reached}, was complete is not known."
    elif not end.complete:
        yield f"The final read of {place} ended at {end.reached}, below the final high watermark {end.high_watermark}."
    elif end.high_watermark < (end.log_end_offset or 0):
        yield (
            f"The final leader of {place} (node {end.node}) did not commit its log from {end.high_watermark} to "
            f"{(end.log_end_offset or 0) - 1}, so records there are not judged."
        )
