"""The schema of every table of a run directory.

``docs/history.md`` explains the columns; Arrow and Spark schemas are derived from :data:`TABLES`. Times are
``CLOCK_MONOTONIC`` nanoseconds unless the name has ``wall``. Bounds called ``end`` are exclusive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

FORMAT_VERSION = 9
"""Raised whenever a column changes its meaning; a reader refuses other versions."""

REBALANCES = ("assigned", "revoked", "lost")
"""What a rebalance did to a process: the ``f`` of its rows."""

FENCED = (
    *("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "STALE_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH"),
    *("CommitFailedException", "CommitFailedError"),
)
"""The errors with which a client gives up a commit that came from no member of the group's generation, or epoch: those
of the coordinator, and the exceptions of Java's client and of kafka-python that stand for some of them."""

MOST_OFFSET = 2**63 - 2
"""The highest offset of a record: the next one must be an int64, too."""

ColumnType = Literal["string", "int32", "int64", "bool", "list<int32>", "list<string>"]
DetailType = Literal["string", "int", "bool", "list<int>", "list<pair>", "list<link>"]
"""The type of a value in a JSON object; a ``pair`` is a list of two whole numbers, a ``link`` one of two ends."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, its type, whether it may be null, and what it means.

    Attributes:
        words: its possible values; empty: any.
        least: the lowest possible number; ``most`` the highest; None: any.
        holds: for a column of JSON objects the types of their values by name; other names have any type. None: it has
            no JSON.
    """

    name: str
    type: ColumnType
    nullable: bool
    meaning: str
    words: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    holds: Mapping[str, DetailType] | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """One table: where its Parquet files lie below the run directory, and its columns in order."""

    name: str
    path: str
    columns: tuple[Column, ...]


def _c(
    name: str, kind: ColumnType, meaning: str, *, nullable: bool = False, words: tuple[str, ...] = (),
    least: int | None = None, most: int | None = None, holds: Mapping[str, DetailType] | None = None,
) -> Column:  # fmt: skip
    return Column(name, kind, nullable, meaning, words, least, most, holds)


DETAIL: Mapping[str, DetailType] = MappingProxyType(
    {
        **dict.fromkeys(("reason", "cause", "source", "change", "epochs_unread", "refused", "start_refused"), "string"),
        **dict.fromkeys(("from_offset", "to_offset", "previous_leader", "controller_epoch"), "int"),
        **dict.fromkeys(("broker", "controller", "unseen_ms", "asked_ns"), "int"),
        **dict.fromkeys(("clean", "elected_from_isr", "places"), "bool"),
        **dict.fromkeys(("elr", "last_known_elr", "voters", "previous_isr"), "list<int>"),
        "epochs": "list<pair>",
    }
)
"""The types of the values in a timeline row's ``detail`` by name; other names have any type."""


HISTORY = Table(
    "history",
    "history",
    (
        _c("run", "string", "the run's id; with it, many runs are one table"),
        _c("index", "int64", "gapless position in the history, from 0", least=0),
        _c("time_ns", "int64", "when the recorder wrote the row"),
        _c("process", "int32", "the client process (Jepsen's :process)"),
        _c("op", "int64", "the operation: shared by its invocations and every row of its completion"),
        _c("txn", "bool", "whether the operation is a transaction"),
        _c("mop", "int32", "which of the operation's micro-operations, from 0; all rows of one poll share it"),
        _c(
            "type",
            "string",
            "invoke, ok, fail (proven never to have happened) or info (unknown)",
            words=("invoke", "ok", "fail", "info"),
        ),
        _c(
            "f",
            "string",
            "send, poll, assign, subscribe, commit, committed (what a commit is read back as), auto_commit (from then "
            "on the client of a member may commit what it was given, and does not say what, nor when), crash; "
            "assigned, revoked, lost (a rebalance during the operation), out_of_range (the consumer learned during the "
            "poll that its position is not in the log); output (a record that a user's program has "
            "put out, as the harness read it), reached (up to where the program is done with its input); put (a record "
            "of the compacted topic is sent), scan (the compacted log is read from its beginning); offset_for_time (a "
            "consumer asks from which offset on records are as young as a time); acquire (a share "
            "consumer polls), acknowledge (it says what became of records that it was given), drain (a share group is "
            "given all that it is not done with, until no more comes); or close (the last row of a complete history; "
            "written once)",
            words=(
                "send",
                "poll",
                "assign",
                "subscribe",
                "commit",
                "committed",
                "auto_commit",
                "crash",
                *REBALANCES,
                "out_of_range",
                "output",
                "reached",
                "put",
                "scan",
                "offset_for_time",
                "acquire",
                "acknowledge",
                "drain",
                "close",
            ),
        ),
        _c(
            "topic",
            "string",
            "null where no partition is concerned: a poll that returned nothing, crash, close ...",
            nullable=True,
        ),
        _c("partition", "int32", "as topic", nullable=True, least=0),
        _c(
            "offset",
            "int64",
            "the record's offset where the row knows it; of a commit and of a reached the next one to be read; of an "
            "output that is in no partition its position among those of the process; of the invoke of a scan the high "
            "watermark up to which it reads; of an out_of_range the consumer's position, null: it does not say which; "
            "of the ok of an offset_for_time the answer, null: no record is as young",
            nullable=True,
            least=0,
            most=MOST_OFFSET,
        ),
        _c(
            "value",
            "int64",
            "the record's unique value; of an output that of the record of the input which it holds, null: of none",
            nullable=True,
        ),
        _c("leader_epoch", "int32", "the record's leader epoch where a poll reports it", nullable=True),
        _c("acks", "int32", "of a send: -1 (all), 1 or 0", nullable=True, least=-1, most=1),
        _c("error", "string", "the error's name, for fail and info", nullable=True),
        _c(
            "final",
            "bool",
            "whether the operation belongs to the final read; of an output whether it is there after the program's end",
        ),
        _c(
            "intact",
            "bool",
            "of a polled record, and then never null: whether its hash is right, and partition, key, headers and "
            "CreateTime are what it was sent with",
            nullable=True,
        ),
        _c(
            "group",
            "string",
            "of a subscribe, a commit, a committed, an auto_commit, a poll, a rebalance or a reached: the consumer "
            "group; of a reached "
            "null: the program has none, and was taken to be done as it fell quiet; of an acquire, an acknowledge or a "
            "drain the share group",
            nullable=True,
        ),
        _c(
            "isolation",
            "string",
            "of a poll: read_committed or read_uncommitted; null: read_committed",
            nullable=True,
            words=("read_committed", "read_uncommitted"),
        ),
        _c(
            "timestamp_ms",
            "int64",
            "of a send the CreateTime that its client chose, of a polled record its timestamp, of an offset_for_time "
            "the time that it asks about; null: not known, or the record has none",
            nullable=True,
        ),
        _c(
            "current_leader_epoch",
            "int32",
            "of a polled record the leader epoch that the fetch named in which it came (KIP-320); null: none, or the "
            "client does not say",
            nullable=True,
            least=0,
        ),
        _c(
            "generation",
            "int32",
            "of a rebalance, of a commit by a member of a group, and of the invoke of a poll by one that subscribed: "
            "the generation that its client was in when the row was written, in the consumer protocol its member "
            "epoch; -1: none; null: the committer is no member, or the client does not say",
            nullable=True,
            least=-1,
        ),
        _c(
            "group_protocol",
            "string",
            "of a row with a generation: the protocol that the group speaks, which says what a generation promises; "
            "null: it is not said, and taken to be the classic one",
            nullable=True,
            words=("classic", "consumer"),
        ),
        _c(
            "delivery_count",
            "int32",
            "of a record that a share consumer was given: how often it has been delivered, as its broker counts; of "
            "the invoke of an acquire how often its group delivers a record at most",
            nullable=True,
            least=1,
        ),
        _c(
            "acknowledgement",
            "string",
            "of an acknowledge: what became of the record",
            nullable=True,
            words=("accept", "release", "reject"),
        ),
    ),
)

TIMELINE = Table(
    "timeline",
    "timeline",
    (
        _c("run", "string", "the run's id"),
        _c("node", "int32", "a broker's id, or 100 for the controller and for the decisions of several; "
           "101, 102 ... for the lives of controller-1, controller-2 ...; -1 of what the cluster told a client",
           least=-1),
        _c("sequence", "int64", "the node's own gapless position, restarting at 0 with each incarnation", least=0),
        _c("incarnation", "int32", "how often the node had been started before", least=0),
        _c("time_ns", "int64", "when it happened"),
        _c("wall_ms", "int64", "what the node's own wall clock said"),
        _c("kind", "string", "started, state (role, watermark, ISR or log end changed), truncation, log_start, "
           "storage_failed, election (controller only), isr (controller only), session (controller only), "
           "controller (KRaft's controllers have elected one of them), "
           "final (as collected), metadata (what the cluster told a client of a partition)",
           words=("started", "state", "truncation", "log_start", "storage_failed", "election", "isr", "session",
                  "controller", "final", "metadata")),
        _c("topic", "string", "null for rows about the node itself", nullable=True),
        _c("partition", "int32", "as topic", nullable=True, least=0),
        _c("role", "string", "leader, follower or offline", nullable=True, words=("leader", "follower", "offline")),
        _c("leader", "int32", "the leader as this node believes; -1 none", nullable=True),
        _c("leader_epoch", "int32", "the leader epoch as this node believes; never null of a leader, and of an "
           "election", nullable=True, least=-1),
        _c("partition_epoch", "int32", "the ISR version as this node believes", nullable=True),
        _c("high_watermark", "int64", "exclusive; null: not known, never of a leader (kind state)", nullable=True),
        _c("log_end_offset", "int64", "as high_watermark", nullable=True),
        _c("log_start_offset", "int64", "the first offset still held", nullable=True),
        _c("isr", "list<int32>", "the in-sync replicas as this node believes", nullable=True),
        _c("detail", "string", "JSON: of a truncation and of a log_start {from_offset, to_offset, reason}; of an "
           "election {clean, elected_from_isr, previous_leader, controller_epoch, cause, and where there are any elr, "
           "last_known_elr}; of a session {broker, change}; of a controller {controller, controller_epoch, voters, "
           "source}; of a state and of a final, where the broker had been up "
           "and was not looked at for long, {unseen_ms}; "
           "of final {source: live|disk, epochs: the leader epochs on disk with their start offsets, "
           "or epochs_unread: why a live broker's are not known}; of metadata {asked_ns: when the question for the "
           "watermark began, refused: why there is no answer, "
           "start_refused: why there is none for the log's start}", nullable=True, holds=DETAIL),
    ),
)  # fmt: skip

REPLICA_LOGS = Table(
    "replica_logs",
    "replica_logs",
    (
        _c("run", "string", "the run's id"),
        _c("node", "int32", "the broker whose log this is", least=0),
        _c("topic", "string", ""),
        _c("partition", "int32", "", least=0),
        _c("offset", "int64", "the record's offset", least=0, most=MOST_OFFSET),
        _c("leader_epoch", "int32", "of the record's batch", least=-1),
        _c(
            "value",
            "int64",
            "the record's unique value; null where the record is not one of the workload's",
            nullable=True,
        ),
        _c("batch_base_offset", "int64", "the first offset of the record's batch"),
        _c(
            "batch_crc",
            "int64",
            "the batch's CRC32C, or CRC-32 before format 2: equal iff every byte it covers is equal",
        ),
        _c("intact", "bool", "whether the batch's bytes match its checksum, and the record is intact as in a poll"),
        _c("producer_id", "int64", "the idempotent producer's id; null without", nullable=True),
        _c("producer_epoch", "int32", "as producer_id", nullable=True),
        _c("sequence", "int32", "the record's own sequence number; as producer_id", nullable=True),
        _c("control", "string", "of a transaction's marker: commit or abort", nullable=True, words=("commit", "abort")),
        _c("transactional", "bool", "whether it belongs to a transaction; null: not known", nullable=True),
    ),
)

_ANYTHING: Mapping[str, DetailType] = MappingProxyType({})
_OF_FAULTS: Mapping[str, DetailType] = MappingProxyType(
    {
        **dict.fromkeys(("offset_ms", "partition"), "int"),
        **dict.fromkeys(("topic", "how"), "string"),
        **dict.fromkeys(("replaced", "clean", "interrupted"), "bool"),
        "links": "list<link>",
    }
)
"""The parameters of a fault that checkers read."""

FAULTS = Table(
    "faults",
    "faults.parquet",
    (
        _c("run", "string", "the run's id"),
        _c("fault", "string", "the fault's name in the run: cut, freeze, f003 ..."),
        _c("kind", "string", "the kind of fault: disk_full, kill, log_dir_failure ..."),
        _c("nodes", "list<string>", "the nodes it was aimed at"),
        _c("parameters", "string", "JSON: the resolved parameters", holds=_OF_FAULTS),
        _c("aimed_ns", "int64", "when its aim was taken from the cluster's observed state"),
        _c("aim", "string", "JSON: that observed state", holds=_ANYTHING),
        _c("injected_ns", "int64", "when it was injected", nullable=True),
        _c("proven_ns", "int64", "when a probe proved that it took effect; null: never", nullable=True),
        _c("proof", "string", "what the probe saw", nullable=True),
        _c("healed_ns", "int64", "when it was healed", nullable=True),
        _c("heal_proven_ns", "int64", "when a probe proved the healing; null: never", nullable=True),
        _c("heal_proof", "string", "what that probe saw", nullable=True),
    ),
)

WIRE = Table(
    "wire",
    "wire",
    (
        _c("run", "string", "the run's id"),
        _c("node", "int32", "the node that was asked; 100 is the controller", least=0),
        _c("connection", "string", "a name for the connection, unique at the node"),
        _c("peer", "string", "who asked: a broker's id, `controller` or `clients`"),
        _c("client_id", "string", "the asker's client id", nullable=True),
        _c("api", "string", "the API as in Kafka's code: PRODUCE, FETCH ...; the number of one that is not known",
           nullable=True),
        _c("version", "int32", "of the API", nullable=True),
        _c("correlation_id", "int32", "by which the response is found; with `connection` it identifies the request",
           nullable=True),
        _c("request_ns", "int64", "when the whole request had come to the tap"),
        _c("response_ns", "int64", "when the whole response had, on its way back; null: no response was seen",
           nullable=True),
        _c("topic", "string", "null where no partition is concerned, and where a request names the topic by an id of "
           "which no Metadata response was seen", nullable=True),
        _c("partition", "int32", "null where no partition is concerned", nullable=True, least=0),
        _c("error", "int32", "the error code in the response; 0: none", nullable=True),
        _c("acks", "int32", "of a Produce: -1 (all), 1 or 0, which has no response", nullable=True),
        _c("offset", "int64", "of a Fetch, an OffsetCommit, a TxnOffsetCommit or a DeleteRecords the offset in the "
           "request; of an OffsetFetch, a ListOffsets or an OffsetForLeaderEpoch the one in the response",
           nullable=True, least=0),
        _c("batch", "int32", "the batch's position among those of its partition in the frame, from 0", nullable=True,
           least=0),
        _c("base_offset", "int64", "of a Produce the base offset in the response, of a Fetch that of a batch in it; of "
           "a ShareFetch or a ShareAcknowledge the first of the offsets that a consumer is given, or acknowledges",
           nullable=True, least=0),
        _c("end_offset", "int64", "the offset behind the last record of that batch, or of those offsets: exclusive",
           nullable=True, least=0),
        _c("records", "int32", "the number of records in the batch, by its header", nullable=True, least=0),
        _c("batch_crc", "int64", "the checksum in the batch's header, as in `replica_logs`", nullable=True),
        _c("producer_id", "int64", "of the batch, or of a request about a transaction, or as InitProducerId gave it",
           nullable=True),
        _c("producer_epoch", "int32", "as producer_id", nullable=True),
        _c("base_sequence", "int32", "the sequence number of the batch's first record", nullable=True),
        _c("aborted", "bool", "of a fetched batch of a transaction: whether the response lists that as aborted, so "
           "that a read_committed consumer has to leave it out; null: it is of none, or has its marker", nullable=True),
        _c("leader_epoch", "int32", "of a fetched batch; of a committed offset; in an answer to ListOffsets or "
           "OffsetForLeaderEpoch", nullable=True),
        _c("current_leader_epoch", "int32", "the leader epoch that the request named (KIP-320)", nullable=True),
        _c("high_watermark", "int64", "in the response: exclusive", nullable=True),
        _c("last_stable_offset", "int64", "as high_watermark", nullable=True),
        _c("log_start_offset", "int64", "in the response; of a DeleteRecords the low watermark", nullable=True),
        _c("log_append_ms", "int64", "in the response to a Produce, where the topic has LogAppendTime", nullable=True),
        _c("group", "string", "the consumer group, or the share group, that the request is about", nullable=True),
        _c("generation", "int32", "of the group, in the request; -1: the client is no member", nullable=True),
        _c("transactional_id", "string", "in the request", nullable=True),
        _c("commits", "bool", "of an EndTxn or a WriteTxnMarkers: whether to commit", nullable=True),
        _c("delivery_count", "int32", "of offsets that a consumer of a share group is given: how often by then, as the "
           "broker counts", nullable=True),
        _c("acknowledgement", "string", "of offsets that a consumer of a share group acknowledges: accept, release, "
           "reject, renew, gap (there is no record), or the number of a type that is not known", nullable=True),
        _c("acknowledge_error", "int32", "of a ShareFetch or a ShareAcknowledge: the error code of what it "
           "acknowledges; 0: none", nullable=True),
        _c("problem", "string", "why the request, or its response, is not understood", nullable=True),
    ),
)  # fmt: skip
"""What a wire tap has seen: a row for each partition that a request names, or for each batch of one in it or its
response; a request that names no partition has one row. Without keys and values of records."""

TABLES: Mapping[str, Table] = MappingProxyType({t.name: t for t in (HISTORY, TIMELINE, REPLICA_LOGS, FAULTS)})
"""The tables of every run."""

EVERY_TABLE: Mapping[str, Table] = MappingProxyType({**TABLES, WIRE.name: WIRE})
"""The tables of a run with a wire tap."""
