"""Single edits of a recorded run, each with what both engines must make of it.

An edit is made as one would who knows the format: indexes, sequences and the counts in ``run.json`` are right again
afterwards, unless they are what is edited. ``random-chaos`` is a healthy run that has passed; in
``all-page-caches-lost`` a record is lost, and three power losses excuse that.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.checkers.chosen import (
    acknowledgement,
    closing,
    controllers,
    delivery,
    election,
    ends,
    every_state,
    everything,
    invocation,
    kill,
    last_rows,
    leading,
    life,
    named,
    powerless,
    record,
    records,
    shrinking,
    tail,
)
from tests.checkers.edited import (
    Change,
    FileChange,
    Run,
    a_directory,
    again,
    as_text,
    both,
    cell,
    columns,
    cut,
    detail,
    flipped,
    foreign,
    marked,
    moved,
    part,
    removed,
    replaced,
    rise,
    setting,
    stranger,
    swap,
    torn,
    with_another,
    without,
    without_values,
)

LOST = "all-page-caches-lost"
OTHER_END = "ends a send that began with another value"
HOUR_NS = 3_600 * 10**9
SETTINGS = ("configuration", "settings")
SCENARIO = ("configuration", "scenario")
GUARANTEES = ("guarantees",)
TIMES = ("aimed_ns", "injected_ns", "proven_ns", "healed_ns", "heal_proven_ns")


class Edit(NamedTuple):
    """One edit.

    Attributes:
        name: what was done, also the name of the edited run.
        outcome: of the verdict, or ``refused``: there is none, and an :class:`InvalidRun` says why.
        says: a kind of anomaly that must be found as a VIOLATION, or a part of a reason, or of the refusal; of a run
            that passes why it may.
        rows: what it changes of tables and ``run.json``.
        files: what it does to the directory.
        of: the scenario of the run that is edited.
    """

    name: str
    outcome: str
    says: str
    rows: Change = lambda run: None
    files: FileChange = lambda path: None
    of: str = "random-chaos"


def healed_at_the_end(run: Run) -> None:
    """A kill was healed when the history ended; its node was up meanwhile, or another fault had taken it down."""
    last_ns = max(row["time_ns"] for row in run.tables["history"])
    cell(kill, healed_ns=last_ns, heal_proven_ns=last_ns)(run)


OF_RECORDS = (
    Edit("a record that is lost", "violation", "lost-write", without("history", delivery)),
    Edit("a final read altered", "violation", "unwritten-read", cell(delivery, value=77)),
    Edit("a final read not intact", "violation", "corrupt-read", cell(delivery, intact=False)),
    Edit("a final read of another epoch", "violation", "inconsistent-epochs", cell(delivery, leader_epoch=rise(1))),
    Edit("a final read elsewhere", "violation", "lost-write", cell(delivery, offset=rise(100_000))),
    Edit("a final read at the largest offset", "violation", "lost-write", cell(delivery, offset=2**63 - 2)),
    Edit("a record altered in one log", "violation", "replica-divergence", cell(record, value=77)),
    Edit("a record altered in all logs", "violation", "altered-record", cell(records, value=77)),
    Edit("a record of none in all logs", "violation", "altered-record", cell(records, value=None)),
    Edit("a record not intact in one log", "violation", "damaged-record", cell(record, intact=False)),
    Edit("a record of another epoch in one log", "violation", "replica-divergence", cell(record, leader_epoch=rise(1))),
    Edit("a record of another checksum in one log", "violation", "replica-divergence", cell(record, batch_crc=5)),
    Edit("a record of another sequence in one log", "violation", "sequence-gap", cell(record, sequence=rise(1000))),
    Edit("a record gone from one log", "violation", "replica-divergence", without("replica_logs", record)),
    Edit("a record gone from all logs", "invalid", "The log of", without("replica_logs", records)),
    Edit("a record twice in one log", "violation", "repeated-sequence", again("replica_logs", record)),
    Edit("a record of a node that is not there", "invalid", "node 7", stranger("replica_logs", record, node=7)),
    Edit("an acknowledgement elsewhere", "violation", "lost-write", cell(acknowledgement, offset=rise(100_000))),
    Edit("an acknowledgement of another value", "invalid", OTHER_END, cell(acknowledgement, value=77)),
    Edit("an acknowledgement of the value before", "invalid", OTHER_END, cell(acknowledgement, value=rise(-1))),
    Edit(
        "an acknowledgement in another partition",
        "invalid",
        OTHER_END,
        cell(acknowledgement, partition=lambda old: 1 - old),
    ),
    Edit(
        "an acknowledged record is said to have failed", "violation", "aborted-read", cell(acknowledgement, type="fail")
    ),
    Edit("an acknowledgement taken back", "pass", "an open outcome claims less", cell(acknowledgement, type="info")),
    Edit("an acknowledgement gone", "pass", "a send without an end is open", without("history", acknowledgement)),
    Edit("an invocation gone", "invalid", "was not invoked before", without("history", invocation)),
)
"""Of what clients and disks have."""

OF_ROWS = (
    Edit("a row gone, and its index", "invalid", "has a gap", torn("history", acknowledgement)),
    Edit("a row twice", "invalid", "index that another row has", again("history", acknowledgement)),
    Edit("no end mark of the history", "invalid", "no close row", without("history", closing)),
    Edit("two end marks of the history", "invalid", "2 close rows", stranger("history", closing, index=10**6)),
    Edit("time that goes back", "invalid", "older than the row before", cell(acknowledgement, time_ns=rise(-(10**9)))),
    Edit(
        "a history an hour late", "invalid", "has no rows any more", cell(everything("history"), time_ns=rise(HOUR_NS))
    ),
    Edit("no epochs of what is read", "invalid", "No poll names", cell(named("poll"), leader_epoch=None)),
    Edit("no final read", "inconclusive", "no final read", cell(named("poll", final=True), final=False)),
    Edit("intact is null", "invalid", "has no intact", cell(delivery, intact=None)),
    Edit("a value is null", "invalid", "has no value", cell(acknowledgement, value=None)),
    Edit("half of a partition", "invalid", "half of a partition", cell(delivery, partition=None)),
    Edit(
        "a partition that is not configured",
        "violation",
        "unwritten-read",
        cell(named("poll", final=True, topic="audit", partition=0), partition=9),
    ),
    Edit("an offset below zero", "invalid", "below 0", cell(delivery, offset=-5)),
    Edit("a word that is none", "invalid", "which is none of", cell(acknowledgement, type="perhaps")),
    Edit("rows of another run", "invalid", "rows of run", files=foreign),
    Edit("no history at all", "invalid", "no close row", without("history", everything("history"))),
)
"""Of the history."""

OF_TIMELINES = (
    Edit("a watermark that falls", "violation", "hw-regression", cell(leading, high_watermark=rise(-3))),
    Edit("a watermark beyond the log", "violation", "bounds-crossed", cell(leading, high_watermark=rise(1000))),
    Edit("an unclean election", "violation", "misclassified-election", cell(election, detail=detail(clean=False))),
    Edit("an ISR of one", "violation", "illegal-isr", cell(shrinking, isr=[2])),
    Edit("no ISR of any leader", "invalid", "that name no ISR", cell(every_state, isr=None)),
    Edit("an ISR of strangers", "violation", "illegal-isr", cell(shrinking, isr=[7])),
    Edit("a partition epoch skipped", "invalid", "comes after 50", cell(shrinking, partition_epoch=rise(50))),
    Edit("a row of the timeline gone", "invalid", "where its last one says", torn("timeline", leading)),
    Edit("a row of the timeline twice", "invalid", "where its last one says", again("timeline", leading)),
    Edit("a killed life that breaks off", "invalid", "where its final rows say", torn("timeline", tail)),
    Edit("no end mark of a life", "invalid", "no final row", without("timeline", last_rows)),
    Edit("a replica without an end", "inconclusive", "is not known: there is no final row", without("timeline", ends)),
    Edit("a node that is not there", "invalid", "node 7", stranger("timeline", leading, node=7)),
    Edit("a life gone", "invalid", "has no timeline of its incarnation", without("timeline", life)),
    Edit("a controller gone", "invalid", "Node 100 has no timeline", without("timeline", controllers)),
    Edit("an incarnation of two billion", "violation", "hw-regression", cell(leading, incarnation=2**31 - 1)),
    Edit("a detail that is no JSON", "invalid", "no JSON", cell(election, detail="{")),
    Edit("a detail with NaN", "invalid", "is no int", cell(election, detail='{"controller_epoch": NaN}')),
    Edit("a detail nested deep", "invalid", "no JSON", cell(election, detail='{"a":' * 100_000)),
    Edit(
        "a history an hour early",
        "invalid",
        "not yet, when clients sent",
        cell(everything("history"), time_ns=rise(-HOUR_NS)),
    ),
    Edit(
        "a timeline an hour early",
        "invalid",
        "has no rows any more",
        cell(everything("timeline"), time_ns=rise(-HOUR_NS)),
    ),
    Edit(
        "wall clocks an hour early",
        "pass",
        "nothing is decided by a wall clock",
        cell(everything("timeline"), wall_ms=rise(-3_600_000)),
    ),
)
"""Of the nodes' own words."""

OF_FAULTS = (
    Edit("a fault without proof", "invalid", "never proven to be in effect", cell(kill, proven_ns=None, proof=None)),
    Edit("a fault whose proof is empty", "invalid", "not what the probe saw", cell(kill, proof=None)),
    Edit("a healing without proof", "invalid", "healing of", cell(kill, heal_proven_ns=None, heal_proof=None)),
    Edit(
        "a fault that was never healed",
        "invalid",
        "never healed",
        cell(kill, healed_ns=None, heal_proven_ns=None, heal_proof=None),
    ),
    Edit("a fault healed before it began", "invalid", "after its", cell(kill, healed_ns=1)),
    Edit("a fault of another node", "invalid", "is filed under", cell(kill, nodes=["2"])),
    Edit("a fault of a node that is not there", "invalid", "no such broker", cell(kill, nodes=["7"])),
    Edit("a fault of nothing", "invalid", "aimed at nothing", cell(kill, nodes=[])),
    Edit("a kill until the end", "invalid", "node 0 down", healed_at_the_end),
    Edit("a fault gone", "invalid", "is not among", without("faults", kill)),
    Edit("a fault twice", "invalid", "in the table 2 times", again("faults", kill)),
    Edit("a fault of no kind", "invalid", "is filed as gremlins", cell(kill, kind="gremlins")),
    Edit("a fault's parameters are no object", "invalid", "no JSON object", cell(kill, parameters="[]")),
    Edit("a power loss without proof", "invalid", "never proven", cell(powerless, proven_ns=None, proof=None), of=LOST),
    Edit("a power loss of another node", "invalid", "is filed under", cell(powerless, nodes=["2"]), of=LOST),
    Edit(
        "a power loss after the end",
        "invalid",
        "has no rows any more",
        cell(powerless, **dict.fromkeys(TIMES, HOUR_NS)),
        of=LOST,
    ),
    Edit("a power loss that is a kill", "invalid", "is filed as kill", cell(powerless, kind="kill"), of=LOST),
    Edit("a power loss gone", "invalid", "is not among", without("faults", powerless), of=LOST),
)
"""Of what was done to the nodes."""

OF_PROMISES = (
    Edit(
        "a smaller minimum is guaranteed",
        "invalid",
        "guarantees min_insync",
        setting(1, *GUARANTEES, "min_insync_replicas"),
    ),
    Edit(
        "unclean elections are guaranteed",
        "invalid",
        "guarantees unclean",
        setting(True, *GUARANTEES, "unclean_election"),
    ),
    Edit(
        "deletions are guaranteed",
        "invalid",
        "guarantees retention True",
        setting(True, *GUARANTEES, "retention"),
    ),
    Edit(
        "deletions are guaranteed, and a record is lost",
        "invalid",
        "guarantees retention True",
        both(setting(True, *GUARANTEES, "retention"), without("history", delivery)),
    ),
    Edit("nothing is numbered", "invalid", "idempotent", setting(False, *GUARANTEES, "idempotent_producers")),
    Edit("a timeline that is sampled", "invalid", "timeline", setting("sampled", *GUARANTEES, "timeline")),
    Edit("leavers are not eligible", "invalid", "eligible", setting(False, *GUARANTEES, "eligible_replicas")),
    Edit("it need not settle", "invalid", "guarantees settles False", setting(False, *GUARANTEES, "settles")),
    Edit(
        "laggards may stay", "invalid", "guarantees laggards_leave_ms", setting(2**62, *GUARANTEES, "laggards_leave_ms")
    ),
    Edit("no guarantees", "invalid", "guarantees", setting({}, "guarantees")),
    Edit("a smaller minimum is set", "invalid", "guarantees min_insync", setting(1, *SETTINGS, "min.insync.replicas")),
    Edit(
        "unclean elections are set",
        "invalid",
        "guarantees unclean",
        setting(True, *SETTINGS, "unclean.leader.election.enable"),
    ),
    Edit(
        "every write is flushed",
        "violation",
        "lost-write",
        setting(1, *SETTINGS, "log.flush.interval.messages"),
        of=LOST,
    ),
    Edit("a broker less", "invalid", "no such node", setting(2, *SCENARIO, "cluster", "brokers")),
    Edit("a broker more", "invalid", "Node 3 has no timeline", setting(4, *SCENARIO, "cluster", "brokers")),
    Edit("a partition less", "inconclusive", "not configured", setting(1, *SCENARIO, "topics", 0, "partitions")),
    Edit(
        "a partition more",
        "inconclusive",
        "is configured, and the history does not name it",
        setting(3, *SCENARIO, "topics", 0, "partitions"),
    ),
    Edit("no scenario", "invalid", "does not name the nodes", setting({}, *SCENARIO)),
    Edit("no configuration", "invalid", "does not name the nodes", setting({}, "configuration")),
    Edit(
        "an imported history",
        "invalid",
        "and has a target, which no import has",
        setting({"format": "jepsen"}, "configuration", "imported"),
    ),
    Edit("another generation", "invalid", "its knobs are those of 4.1", setting("0.10", "generation")),
    Edit("a generation that is none", "invalid", "its knobs are those of 4.1", setting("9.9", "generation")),
    Edit(
        "another generation beside a bug",
        "invalid",
        "its knobs are those of 4.1",
        both(
            setting("2.8", "generation"),
            setting("seawall run random-chaos --set replication.bugs=ack_on_append", "configuration", "reproduce"),
        ),
    ),
    Edit(
        "a smaller minimum is set and guaranteed",
        "invalid",
        "scenario has the setting min.insync.replicas 2",
        both(setting(1, *SETTINGS, "min.insync.replicas"), setting(1, *GUARANTEES, "min_insync_replicas")),
    ),
    Edit("all acks are 1", "invalid", "sends with acks=1", cell(named("send"), acks=1)),
    Edit("all acks are 0", "invalid", "sends with acks=0", cell(named("send"), acks=0)),
    Edit(
        "another knob",
        "pass",
        "a cluster may have knobs of its own",
        setting("hw", "configuration", "knobs", "truncation"),
    ),
    Edit(
        "an anomaly foretold", "invalid", "and its scenario does not", setting([{"kind": "lost-write"}], "predictions")
    ),
    Edit("an unknown anomaly foretold", "invalid", "no such anomaly", setting([{"kind": "gremlins"}], "predictions")),
    Edit("a life without the ending of the one before", "invalid", "says how its life", setting([], "endings")),
    Edit("a reason to break off", "invalid", "says why it did not come to its end", setting("no room", "why")),
    Edit("a run that broke off", "invalid", "not 'complete'", setting("running", "state")),
    Edit("a cluster that stood still", "invalid", "unrest", setting({"still_s": 9.0}, "unrest")),
)
"""Of what the run promises, and of what it says of itself."""

OF_DOCUMENTS = (
    Edit("a time below zero", "refused", "duration_s", setting(-5, "duration_s")),
    Edit("a number as text", "refused", "min_insync_replicas", setting("2", *GUARANTEES, "min_insync_replicas")),
    Edit("a flag as a number", "refused", "unclean_election", setting(0, *GUARANTEES, "unclean_election")),
    Edit("predictions that are no list", "refused", "predictions", setting({}, "predictions")),
    Edit("a state that is none", "refused", "state", setting("done", "state")),
    Edit("another format", "refused", "format", setting(99, "format")),
    Edit("not a number", "refused", "no JSON", files=replaced("run.json", '"seed": ', '"seed": NaN, "x": ')),
    Edit("infinity", "refused", "no JSON", files=replaced("run.json", '"seed": ', '"seed": Infinity, "x": ')),
    Edit(
        "a number of thirty digits",
        "refused",
        "64 bits",
        files=replaced("run.json", '"seed": ', '"seed": 1' + 30 * "0" + ', "x": '),
    ),
    Edit(
        "a number of a million digits",
        "refused",
        "run.json",
        files=replaced("run.json", '"seed": ', '"seed": 1' + 10**6 * "0" + ', "x": '),
    ),
    Edit("nested deep", "refused", "no JSON", files=swap("run.json", b'{"a":' * 100_000)),
    Edit("not UTF-8", "refused", "no JSON", files=swap("run.json", b'{"run": "\xff"}')),
    Edit("a byte order mark", "refused", "no JSON", files=marked),
    Edit("an empty run.json", "refused", "no JSON", files=swap("run.json", b"")),
    Edit("a run.json that is a list", "refused", "JSON object", files=swap("run.json", b"[]")),
    Edit("a directory in the place of run.json", "refused", "directory", files=a_directory("run.json")),
    Edit("no run.json", "refused", "is missing", files=removed("run.json")),
    Edit("no schedule log", "pass", "only reports and outcomes read it", files=removed("schedule_log.json")),
    Edit(
        "a schedule log that is none",
        "pass",
        "only reports and outcomes read it",
        files=swap("schedule_log.json", b"[" * 1000),
    ),
    Edit("other counts", "invalid", "run.json says", files=replaced("run.json", '"rows": ', '"rows": 1')),
)
"""Of ``run.json`` and ``schedule_log.json``."""

OF_FILES = (
    Edit("no history", "invalid", "history", files=removed(part("history"))),
    Edit("no faults", "invalid", "faults", files=removed("faults.parquet")),
    Edit("no timeline", "invalid", "timeline", files=removed(part("timeline"))),
    Edit("no logs", "invalid", "replica_logs", files=removed(part("replica_logs"))),
    Edit("a history of another name", "invalid", "history", files=moved(part("history"), "history/rows.parquet")),
    Edit("half of the history", "invalid", "truncated", files=cut(part("history"))),
    Edit("half of the faults", "invalid", "truncated", files=cut("faults.parquet")),
    Edit("a flipped byte in the timeline", "invalid", "cannot be read", files=flipped(part("timeline"))),
    Edit("a flipped byte in the logs", "invalid", "cannot be read", files=flipped(part("replica_logs"))),
    Edit("an empty history file", "invalid", "no Parquet", files=swap(part("history"), b"")),
    Edit(
        "a column gone",
        "invalid",
        "lacks column",
        files=columns("history", without_values),
    ),
    Edit(
        "a column twice",
        "invalid",
        "more than once",
        files=columns(
            "replica_logs", lambda table: table.append_column(table.schema.field("value"), table.column("value"))
        ),
    ),
    Edit("a column of text", "invalid", "is of type", files=as_text("offset")),
    Edit("a directory in the place of a table", "invalid", "history", files=a_directory(part("history"))),
    Edit(
        "a column more",
        "pass",
        "what is not in the schema is not read",
        files=columns("replica_logs", with_another("x")),
    ),
)
"""Of the files of tables."""

EDITS = (*OF_RECORDS, *OF_ROWS, *OF_TIMELINES, *OF_FAULTS, *OF_PROMISES, *OF_DOCUMENTS, *OF_FILES)
