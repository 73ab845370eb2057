"""The frames of a wire tap that show whose an anomaly is, and the rows that they are compared with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from checkers.views.row import Row, where
from harness.checker import Evidence, offsets
from harness.findings import Finding
from harness.model import CLIENTS, TopicPartition

END_TXN = "END_TXN"
"""The API by which a producer ends a transaction; its frames name no partition."""

DELETE_RECORDS = "DELETE_RECORDS"
"""The API by which a client deletes the beginning of a log; its frames are few, and all at hand."""

_MOST_FRAMES = 6
"""How many frames an anomaly cites."""


class Frames:
    """The frames of one run that the attribution of its findings may need, with the rows that they are compared with.

    Args:
        wire: rows of the table, from and to clients: at least those about an offset that a finding names, or with the
            checksum of a batch that the replicas' logs hold there.
        blind: the APIs of which a frame was not understood; "" of a frame whose API is not known.
        history: at least the rows about an offset or a value that a finding names, and a final read's.
        replica_logs: likewise.

    Attributes:
        of: the frames that name a partition, by API and partition, in the order of the requests.
        endings: those of EndTxn, by producer id and epoch.
        begun: when the send, or put, of a value began, by partition and value; rely on it for the finding's own values
            alone.
        ended: when a client reported how the send of a value ended, by partition and value; rely on it as on ``begun``.
        asked: when an operation of a group began, by the operation's number and partition.
        drained: when the drain of a share group began, by group and partition.
        taker: the process that was given a record last, by share group: that to which no more came.
        acks: the rows that acknowledge a value, by partition and value.
        read: the rows that deliver an offset, by partition and offset.
        refused: the rows of puts to a compacted log that failed, by partition.
        scanned: the rows of a process that reads a whole compacted log, by partition and process.
        rows: the history's rows by their positions.
        final: the processes that were given anything by a final read, by partition.
        logged: the replicas' records, by partition.
        prints: whether the output of a user's program is in no topic.
    """

    def __init__(
        self, wire: Iterable[Row], blind: Collection[str], history: Collection[Row], replica_logs: Iterable[Row]
    ) -> None:
        self.blind = frozenset(blind)
        self.of: dict[tuple[str, TopicPartition], list[Row]] = defaultdict(list)
        self.endings: dict[tuple[int, int], list[Row]] = defaultdict(list)
        for row in sorted((row for row in wire if row["peer"] == CLIENTS), key=_age):
            if row["topic"] is not None and row["api"] is not None:
                self.of[row["api"], where(row)].append(row)
            elif row["api"] == END_TXN and row["producer_id"] is not None:
                self.endings[row["producer_id"], row["producer_epoch"]].append(row)
        self.begun: dict[tuple[TopicPartition, int], int] = {}
        self.ended: dict[tuple[TopicPartition, int], int] = {}
        self.asked: dict[tuple[int, TopicPartition], int] = {}
        self.acks: dict[tuple[TopicPartition, int], list[Row]] = defaultdict(list)
        self.read: dict[tuple[TopicPartition, int], list[Row]] = defaultdict(list)
        self.refused: dict[TopicPartition, list[Row]] = defaultdict(list)
        self.scanned: dict[tuple[TopicPartition, int], list[Row]] = defaultdict(list)
        self.drained: dict[tuple[str, TopicPartition], int] = {}
        self.taker: dict[str, int] = {}
        self.rows: dict[int, Row] = {}
        self.final: dict[TopicPartition, set[int]] = defaultdict(set)
        self._take(sorted((row for row in history if row["topic"] is not None), key=lambda row: int(row["index"])))
        self.prints = any(row["f"] == "output" and row["type"] == "ok" and row["topic"] is None for row in history)
        self.logged: dict[TopicPartition, list[Row]] = defaultdict(list)
        for row in replica_logs:
            self.logged[where(row)].append(row)

    def _take(self, history: Iterable[Row]) -> None:
        for row in history:
            match row["f"], row["type"]:
                case "send" | "put", _:
                    self._take_send(row)
                case "scan", _:
                    self.scanned[where(row), row["process"]].append(row)
                case "commit" | "committed" | "acknowledge", "invoke":
                    self.asked[row["op"], where(row)] = row["time_ns"]
                case "drain", "invoke":
                    self.drained[row["group"], where(row)] = row["time_ns"]
                case "acquire", "ok":
                    self.taker[row["group"]] = row["process"]
                case "poll", "ok" | "info" | "fail" if row["offset"] is not None:
                    self.read[where(row), row["offset"]].append(row)
                    if row["final"]:
                        self.final[where(row)].add(row["process"])
            self.rows[row["index"]] = row

    def _take_send(self, row: Row) -> None:
        if row["type"] == "invoke":
            self.begun.setdefault((where(row), row["value"]), row["time_ns"])
        else:
            self.ended[where(row), row["value"]] = row["time_ns"]
        if row["type"] == "ok":
            self.acks[where(row), row["value"]].append(row)
        if (row["f"], row["type"]) == ("put", "fail"):
            self.refused[where(row)].append(row)

    def covering(self, api: str, place: TopicPartition, offset: int) -> list[Row]:
        """The frames without an error that say something of a batch with ``offset`` in it."""
        return [
            row
            for row in self.of[api, place]
            if row["error"] == 0 and row["base_offset"] is not None and row["base_offset"] <= offset < row["end_offset"]
        ]

    def given(self, place: TopicPartition, offset: int, process: int, until_ns: int) -> list[Row]:
        """The Fetch responses with ``offset`` by then: to the process's own client if there are any, else to all."""
        sent = [row for row in self.covering("FETCH", place, offset) if is_between(row, None, until_ns)]
        return [row for row in sent if row["client_id"] == client_id_of(process)] or sent

    def batches_of(self, place: TopicPartition, value: int | None) -> list[Row]:
        """The Produce frames with the batches in which the logs hold ``value``."""
        sums = {row["batch_crc"] for row in self.logged[place] if value is not None and row["value"] == value}
        return [row for row in self.of["PRODUCE", place] if row["batch_crc"] in sums]

    def value_in(self, finding: Finding, frame: Row, offset: int) -> int | None:
        """The value that the batch of a frame holds at ``offset``, by a log that has the batch; None: unknown.

        A log that has it at the offset counts first; a broker may send a batch with a value of the finding at another.
        """
        held = [
            row
            for row in self.logged[place_of(finding)]
            if row["batch_crc"] == frame["batch_crc"] and row["value"] is not None
            and row["offset"] - row["batch_base_offset"] == offset - frame["base_offset"]
            and (row["offset"] == offset or row["value"] in (finding.value, finding.other_value))
        ]  # fmt: skip
        values = sorted(held, key=lambda row: (row["offset"] != offset, row["offset"], row["value"]))
        return next((int(row["value"]) for row in values), None)

    def is_restamped(self, place: TopicPartition) -> bool:
        """Whether the leader stamps the topic's records, and so changes the checksums of their batches."""
        return any(row["log_append_ms"] is not None for row in self.of["PRODUCE", place])


def not_understood(wire: Iterable[Row]) -> set[str]:
    """The APIs of which a frame from or to a client was not understood; "" of a frame whose API is not known.

    A frame that names its topic by an id alone is none of the topic's, as far as is known, and so not understood.
    """
    return {row["api"] or "" for row in wire if row["peer"] == CLIENTS and _is_unclear(row)}


def _is_unclear(row: Row) -> bool:
    return row["problem"] is not None or (row["topic"] is None and row["partition"] is not None)


def cited(frames: Sequence[Row]) -> Iterator[Evidence]:
    """The first few of the frames, each once, as evidence."""
    seen: dict[tuple[object, ...], Row] = {}
    for row in frames:
        seen.setdefault((*identity(row), row["base_offset"]), row)
    for row in [*seen.values()][:_MOST_FRAMES]:
        names = ("node", "connection", "correlation_id", "request_ns")
        yield Evidence("wire", {name: row[name] for name in names}, _in_words(row))


def _in_words(row: Row) -> str:
    asked = f"{row['client_id'] or row['peer']} sent node {row['node']} {row['api']}"
    if row["api"] == "FETCH" and row["offset"] is not None:
        asked += f" from offset {row['offset']}"
    if row["producer_id"] is not None and row["base_sequence"] is not None:
        asked += f" (producer id {row['producer_id']}, epoch {row['producer_epoch']}, sequence {row['base_sequence']})"
    if row["response_ns"] is None:
        return f"{asked} and was not answered"
    after_ms = (row["response_ns"] - row["request_ns"]) / 1e6
    if row["acknowledgement"] is not None:
        asked += f" ({row['acknowledgement']} of {offsets(row['base_offset'], row['end_offset'])})"
        return f"{asked} and was answered after {after_ms:.1f} ms: error {row['acknowledge_error']}"
    answer = f"{asked} and was answered after {after_ms:.1f} ms: error {row['error']}"
    if row["delivery_count"] is not None:
        return f"{answer}, {offsets(row['base_offset'], row['end_offset'])} as delivery {row['delivery_count']}"
    if row["base_offset"] is not None:
        return f"{answer}, {offsets(row['base_offset'], row['end_offset'])}"
    committed = row["api"] in ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT", "OFFSET_FETCH")
    return f"{answer}, {or_none(row['offset'])}" if committed else answer


def identity(row: Row) -> tuple[int, str, int]:
    """What identifies a request, and its response: node, connection and correlation id."""
    return row["node"], row["connection"], row["correlation_id"]


def _age(row: Row) -> tuple[object, ...]:
    return row["request_ns"], *(str(part) for part in identity(row)), row["base_offset"] or 0


def is_between(row: Row, since_ns: int | None, until_ns: int) -> bool:
    """Whether the frame was answered by then, and asked no sooner."""
    answered = row["response_ns"] is not None and row["response_ns"] <= until_ns
    return answered and (since_ns is None or since_ns <= row["request_ns"])


def client_id_of(process: int) -> str:
    """The client id of a consumer of the process; see :mod:`harness.client_ports`."""
    return f"seawall-{process}"


def place_of(finding: Finding) -> TopicPartition:
    """The finding's partition."""
    return TopicPartition(finding.topic, finding.partition)


def or_none(offset: int | None) -> str:
    """A committed offset in words."""
    return "no committed offset" if offset is None else f"offset {offset}"
