"""The workloads and the faults of the matrix, at both depths: what a person pins, while the seed draws the rest."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from harness.exploration.loads import STEADY
from harness.model import CORE, STACK
from harness.replication.knobs import CURRENT_GENERATION
from harness.scenario import Scenario
from harness.simulation.core.configuration import Setup, setup
from harness.simulation.core.drawn_loads import ASSIGNED, GROUPS, PIPELINED, PROCESSORS, TRANSACTIONS
from harness.validation import validated

SYNTHETIC = "synthetic"
"""The depth of what no broker here does: histories that are made up."""

Settings = Mapping[str, str]

_CALM: Settings = {"fault.count": "0", "loss": "0", "duplicate": "0", "late": "0"}
_SOUND: Settings = MappingProxyType(
    {
        "min.insync.replicas": "2",
        "replication.factor": "3",
        "unclean.leader.election.enable": "false",
        "horizon.ms": "500",
        "send.timeout.ms": "150",
        "produce.wait.ms": "60",
        "fault.count": "6",
        "deletions": "0",
        "replication.reelected_leader": "forgets",
        "replication.straddled_batch": "cut",
    }
)
"""A cluster that must not lose anything: three replicas of which two must be in sync, and clean elections only. The
remedies for what no release has mended are on, so that every violation of a run without a bug is a false alarm."""


class Mix(NamedTuple):
    """One way to load a cluster, or to harm it. ``says``: what it is; ``hides``: what it cannot show; both in words."""

    name: str
    says: str
    hides: str


WORKLOADS = (
    Mix("single", "acks=all, a record at a time", "what takes two records in a batch, or a producer with acks 0 or 1"),
    Mix("batches", "acks=all, up to eight records at a time; fetches of one batch", "what takes acks 0 or 1"),
    Mix("mixed", "producers with acks=all, acks=1 and acks=0, up to three records at a time",
        "the loss of a record with acks=0, or with acks=1 at an election or a restart of its leader: Kafka permits it"),
    Mix("pipelined", "idempotent producers with up to five requests in flight, which send again what is not answered "
        "in time, and go on in another epoch when they have given up", "what takes acks 0 or 1, or a transactional id"),
    Mix("groups", "acks=all, a record at a time; three members of a group, which read and commit, come, hang and go",
        "what takes a static member, or another assignor than `range`"),
    Mix("assigned", "the same, of a group of the consumer protocol (KIP-848)",
        "what takes a static member, or another assignor than `uniform`"),
    Mix("transactions", "transactions over two partitions that poll, too; some are aborted, left open or taken over",
        "what takes transactions that commit offsets"),
    Mix("compaction", "acks=all, a record at a time; and keys that are overwritten and deleted in a compacted topic",
        "what takes replicas that no reader of the topic is given, or one that is away for longer than a tombstone"),
    Mix("processors", "acks=all, a record at a time; three processors in a group, which put out a result of each in "
        "transactions; they come, stand still, are killed and go",
        "what takes a transactional id for each partition, or a group of the consumer protocol"),
    Mix("lookups", "acks=all, a record at a time; clients delete the beginning of logs, and look offsets up by time",
        "what takes a lookup in a log of many segments, or of timestamps that are not in order"),
)  # fmt: skip

FAULTS = (
    Mix("none", "nothing goes wrong", "what takes an election, a change of the ISR, a truncation or a recovery"),
    Mix("kill", "brokers are killed or shut down, and come back",
        "what takes from a disk, for a page cache survives its process; and a deposed leader that acts on"),
    Mix("power", "one broker at a time loses power, and others are killed",
        "what takes two brokers that have lost something"),
    Mix("blackout", "all may lose power at once; every record is flushed", "what a power loss takes from a page cache"),
    Mix("partition", "links are cut, held or slow, also towards the controller",
        "what takes a restart: every process lives on"),
    Mix("pause", "brokers stand still", "what takes a restart, or a link that carries in one direction only"),
    Mix("disk", "disks are full", "a disk that loses or garbles what it holds"),
    Mix("rot", "a bit of a log is wrong after a crash", "damage to two replicas at once"),
    Mix("clock", "clocks step", "clients with a wrong clock: only those of brokers step"),
    Mix("control", "the controller is killed or stands still, and leaders are moved by hand",
        "what takes a broker that fails"),
    Mix("deletion", "old records are deleted", "a deletion beside a partition or a power loss"),
    Mix("all", "all of this", "what takes two brokers that have lost something"),
)  # fmt: skip

CHAOS = (
    Mix("at_once: 1", "one fault at a time, each when every ISR is full again",
        "what takes two failures: a broker that is the last in an ISR and fails, a deposed leader beside a failover"),
    Mix("budget: promised", "up to `at_once` faults at one time, within what the configuration promises to survive",
        "how a cluster loses what Kafka does not keep: by the last member of an ISR, or `min.insync.replicas` brokers, "
        "that have lost something; before 4.0 also by a broker that is back with less before its session is over"),
    Mix("budget: any", "up to `at_once` faults at one time, whatever they are",
        "whether a loss is a bug: healthy clusters of every generation lose committed records in it, a `VIOLATION` "
        "where fewer than `min.insync.replicas` have lost something, and `DOCUMENTED` otherwise"),
)  # fmt: skip
"""Ways to play the faults of a scenario with ``chaos``."""

SINGLE = WORKLOADS[0].name
COMPACTION, LOOKUPS = "compaction", "lookups"
NONE, ALL = FAULTS[0].name, FAULTS[-1].name

OF_SOME = (LOOKUPS, GROUPS, ASSIGNED, TRANSACTIONS, COMPACTION, PROCESSORS, PIPELINED)
"""Loads under which some bugs alone are looked for, and no others: see :attr:`harness.replication.bugs.Bug.load`.

A new one is the last: the seeds of its cells are behind those of the others.
"""

_CORE_WORKLOADS: Mapping[str, Settings] = {
    "single": {"acks": "all", "records.per.send": "1"},
    "batches": {"acks": "all", "records.per.send": "8", "fetch.batches": "1"},
    "mixed": {"acks": "all,1,0", "records.per.send": "3", "producers": "3"},
}
_CORE_FAULTS: Mapping[str, Settings] = {
    "none": _CALM,
    "kill": {"faults": "kill:2,stop"},
    "power": {"faults": "power_loss:3,kill,partition", "flush.messages": "0", "flush.ms": "0"},
    "blackout": {
        "faults": "power_loss",
        "flush.messages": "1",
        "lossy.budget": "3",
        "checkpoints.flushed": "true",
        "fault.count": "12",
    },
    "partition": {"faults": "partition:3,partition/between:2", "disturbances": "slow_links"},
    "pause": {"faults": "pause"},
    "disk": {"faults": "disk_full"},
    "clock": {"faults": "clock:2,pause"},
    "control": {"faults": "kill/controller:2,pause/controller", "disturbances": "elect:3"},
    "deletion": {**_CALM, "deletions": "6", "fault.count": "2", "faults": "kill", "disturbances": "elect"},
    "all": {
        "faults": "kill:2,stop,power_loss,pause:2,partition:3,partition/between,clock,disk_full,kill/controller,"
        "pause/controller",
        "disturbances": "slow_links,elect:2",
        "fault.count": "10",
    },
}

_STACK_WORKLOADS: Mapping[str, Mapping[str, Any]] = {
    "single": {"name": "unique_sends", "producers": 3, "consumers": 1, "rate": 80, "delivery_timeout_s": 0.6},
    **STEADY,
    COMPACTION: {
        "name": "compacted_keys",
        "delivery_timeout_s": 0.6,
        "producers": 1,
        "consumers": 1,
        "rate": 20,
        "writers": 3,
        "writes": 80,
        "keys": 12,
        "read_every_s": 0.1,
        "segment_ms": 150,
        "tombstone_ms": 2500,
        "retire_every_s": 0.15,
    },
    LOOKUPS: {
        "name": "deleted_records",
        "delivery_timeout_s": 0.6,
        "producers": 3,
        "consumers": 1,
        "rate": 80,
        "delete_every_s": 0.4,
        "lookup_every_s": 0.1,
    },
}
_MARKS = ("name", "protocol", "transactional_ids")
OWN_LOADS: Mapping[str, Mapping[str, Any]] = {
    name: {key: value for key, value in _STACK_WORKLOADS[name].items() if key in _MARKS} for name in sorted(OF_SOME)
}
"""By load of :data:`OF_SOME`, what a run's workload must be to be like it."""

_LASTS_S: Mapping[str, float] = {
    "single": 3, PIPELINED: 4, GROUPS: 8, ASSIGNED: 8, TRANSACTIONS: 6, COMPACTION: 6, PROCESSORS: 8, LOOKUPS: 4,
}  # fmt: skip
_SETTINGS: Mapping[str, Mapping[str, Any]] = {COMPACTION: {"log.cleaner.backoff.ms": 250}}
_STACK_FAULTS: Mapping[str, list[dict[str, Any]]] = {
    "kill": [
        {"fault": "kill", "node": "leader"},
        {"fault": "stop", "node": "leader"},
        {"fault": "kill", "node": "any"},
    ],
    "power": [{"fault": "power_loss", "node": "leader"}, {"fault": "power_loss", "node": "any"}],
    "disk": [
        {"fault": "disk_full", "node": "leader", "free_bytes": 300, "must_refuse": True},
        {"fault": "disk_full", "node": "any", "free_bytes": 700, "must_refuse": True},
    ],
    "rot": [
        {"fault": "corrupt_log", "node": "follower", "topic": "ledger", "partition": 0, "offset": 1},
        {"fault": "corrupt_log", "node": "follower", "topic": "ledger", "partition": 0, "offset": 3, "how": "cut"},
        {"fault": "kill", "node": "leader"},
    ],
}
_STACK_FAULTS_ALL = [
    *(one for name, ones in _STACK_FAULTS.items() if name != "rot" for one in ones),
    {"fault": "partition", "isolate": "leader"},
    {"fault": "partition", "between": ["leader", "follower"]},
    {"fault": "pause", "node": "leader"},
    {"fault": "clock", "node": "any", "offset_ms": 3_600_000},
]


def faults_at(depth: str) -> tuple[str, ...]:
    """The names of the fault mixes that there are at a depth, in the order of :data:`FAULTS`."""
    known = {CORE: {*_CORE_FAULTS}, STACK: {NONE, *_STACK_FAULTS, ALL}}.get(depth, {NONE})
    return tuple(mix.name for mix in FAULTS if mix.name in known)


def workloads_at(depth: str) -> tuple[str, ...]:
    """The same of the workloads."""
    known = {CORE: {*_CORE_WORKLOADS}, STACK: {*_STACK_WORKLOADS}}.get(depth, {SINGLE})
    return tuple(mix.name for mix in WORKLOADS if mix.name in known)


def core_setup(workload: str, faults: str, knobs: Settings, generation: str = CURRENT_GENERATION) -> Setup:
    """What is pinned of the seeds of one cell on the bare core; ``knobs`` set the bug."""
    pinned = {**_SOUND, **_CORE_WORKLOADS[workload], **_CORE_FAULTS[faults]}
    return setup(generation, {**pinned, **{f"replication.{name}": value for name, value in knobs.items()}})


def stack_scenario(workload: str, faults: str) -> Scenario:
    """The scenario of one cell on the whole broker."""
    chosen = _STACK_FAULTS_ALL if faults == ALL else _STACK_FAULTS.get(faults)
    lasts_s = _LASTS_S[workload]
    harm: dict[str, Any] = {"schedule": [{"wait_s": lasts_s}]}
    if chosen is not None:
        harm = {"duration_s": lasts_s, "chaos": {"interval_s": [0.1, 0.4], "for_s": [0.3, 0.9], "faults": chosen}}
    document = {
        "id": f"detection-{workload}-{faults}",
        "title": "A cell of the detection matrix",
        "source": "docs/detection.md",
        "description": "See the detection matrix.",
        "cluster": {
            "brokers": 3,
            "settings": {
                "min.insync.replicas": 2,
                "broker.session.timeout.ms": 300,
                "broker.heartbeat.interval.ms": 50,
                "replica.lag.time.max.ms": 400,
                "replica.fetch.wait.max.ms": 50,
                "replica.socket.timeout.ms": 300,
                "log.segment.bytes": 4000,
                "group.consumer.session.timeout.ms": 500,
                "group.consumer.heartbeat.interval.ms": 150,
                "replica.high.watermark.checkpoint.interval.ms": 200,
                **_SETTINGS.get(workload, {}),
            },
        },
        "topics": [{"name": "ledger", "partitions": 2, "replication_factor": 3}],
        "workload": _STACK_WORKLOADS[workload],
        "replication": {"reelected_leader": "forgets", "straddled_batch": "cut"},
        **harm,
    }
    return validated(Scenario, document, "")
