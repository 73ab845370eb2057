"""Declares what stands inside ``run.json``: every value must have the type that its reader expects.

Otherwise a checker could misread a guarantee of the run, or ignore it. :class:`harness.history.run_directory.Manifest`
has the keys of the document itself. Keys that no reader knows are ignored, except those of predictions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

PredictedVerdict = Literal["VIOLATION", "EXPECTED", "DOCUMENTED", "WEAK", "INDETERMINATE"]

VERDICTS = get_args(PredictedVerdict)
"""What a prediction's verdict may be: the values of ``harness.checker.Verdict``."""

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Guarantees(BaseModel):
    """What the configuration promises. A key is missing where nothing is known about it.

    Attributes:
        min_insync_replicas: the least ``min.insync.replicas`` of any topic.
        replication_factor: the least of any topic.
        unclean_election: whether a replica outside the ISR may be elected.
        retention: whether records may be deleted.
        idempotent_producers: whether every producer numbers its records, or sends each only once.
        eligible_replicas: whether elections go by eligible leader replicas (KIP-966).
        settles: whether the run had time for the cluster to come to rest.
        laggards_leave_ms: how many milliseconds a lagging replica may stay in the ISR; null: not bounded.
        tombstones_stay_ms: how many milliseconds a compacted log keeps a tombstone after it was first compacted at
            least; null: for ever.
        timeline: ``sampled`` where the harness looked at brokers from outside many times a second.
        time: ``virtual`` where the simulator ran the brokers.
        members_kept_ms: for how many milliseconds at least the coordinator of a group of the classic protocol keeps a
            member that is silent, or does not join again; null: not known.
        program_may_skip: whether a user's program may leave records of its input out.
        program_may_repeat: whether it may process one more than once.
        program_may_reorder: whether it may process the records of a key in another order.
    """

    min_insync_replicas: Count | None = None
    replication_factor: Count | None = None
    unclean_election: bool = False
    retention: bool = False
    idempotent_producers: bool = False
    eligible_replicas: bool = False
    settles: bool = False
    laggards_leave_ms: Count | None = None
    tombstones_stay_ms: Count | None = None
    timeline: str = ""
    time: str = ""
    members_kept_ms: Count | None = None
    program_may_skip: bool = False
    program_may_repeat: bool = False
    program_may_reorder: bool = False


class UnrestDocument(BaseModel):
    """How the healed cluster did not recover although no probe blames the environment; empty: it did.

    Attributes:
        of: what did not recover: coming to ``rest``, delivering ``reads``, acknowledging ``sends``, giving members of
            ``groups`` their partitions.
        still_s: for how many seconds it had made no progress.
        looks: the number of observations meanwhile.
        missing: by partition, what was missing in the end, a phrase each.
        eligible: by partition without a leader, the brokers that could be elected.
        gone: the brokers that had exited by themselves.
        probes: the results of the probes of the environment, a sentence each.
    """

    of: Literal["rest", "reads", "sends", "takeovers"] = "rest"
    still_s: Seconds | None = None
    looks: Count = 0
    missing: Mapping[str, tuple[str, ...]] = {}
    eligible: Mapping[str, tuple[Count, ...]] = {}
    gone: tuple[Count, ...] = ()
    probes: tuple[str, ...] = ()


class EndingDocument(BaseModel):
    """The exit of a node that the harness did not order.

    Attributes:
        node: its id.
        incarnation: how often it had been started before.
        time_ns: when, in nanoseconds of the run's clock.
        status: the exit status; negative: the signal.
        said: the node's last words.
        blames: what in the environment it blames; empty: nothing.
    """

    node: Count
    incarnation: Count
    time_ns: Count
    status: int
    said: str
    blames: str


class UnknownTopicDocument(BaseModel):
    """A topic that the run created, that no client deleted, and that the cluster did not know in the end.

    Attributes:
        topic: its name.
        asked_s: for how many seconds the runner asked.
        looks: how many answers to Metadata named brokers, and not the topic.
    """

    topic: str
    asked_s: Seconds
    looks: Count


class ProgramDocument(BaseModel):
    """A user's program during the run; empty: there was none.

    Attributes:
        started: how often a copy of it was started.
        exited: how often one ended by itself.
        killed: how often the harness ended one by SIGKILL while it ran.
        statuses: by exit status (negative: the signal), how often one ended by itself with it.
        said: the last of its standard error before one ended by itself.
    """

    started: Count = 0
    exited: Count = 0
    killed: Count = 0
    statuses: Mapping[str, Count] = {}
    said: str = ""


class OrderDocument(BaseModel):
    """A DeleteRecords request of a client, and how it ended.

    Attributes:
        topic: whose records it deletes.
        partition: its number.
        before: the first offset to keep; null: the high watermark.
        timeout_ms: how many milliseconds the leader may wait for the followers.
        node: the broker that received it; null: the client found the leader.
        invoked_ns: when it was sent, in nanoseconds of the run's clock.
        completed_ns: when it ended; null: it did not.
        error: its name; null: the records are deleted, or it did not end.
        low_watermark: the smallest log start offset of the replicas, from the answer; null: it has none.
    """

    topic: str
    partition: Count
    before: Count | None
    timeout_ms: Count
    node: Count | None
    invoked_ns: Count
    completed_ns: Count | None
    error: str | None
    low_watermark: int | None


class PredictionDocument(BaseModel):
    """An anomaly that the scenario predicts; what is missing or null matches anything.

    Attributes:
        kind: of the anomaly, as in docs/anomalies.md.
        topic: where.
        partition: its number.
        offset: in the partition.
        verdict: the one without the prediction; missing: ``VIOLATION``.
    """

    model_config = ConfigDict(extra="forbid")

    kind: str
    topic: str | None = None
    partition: Count | None = None
    offset: Count | None = None
    verdict: PredictedVerdict = "VIOLATION"


class TableSize(BaseModel):
    """The size of a table.

    Attributes:
        rows: in all its files.
        parts: the number of its files.
    """

    rows: Count = 0
    parts: Count = 0


class _Open(BaseModel):
    """A part of the resolved scenario, of which this is what readers use; docs/schemas/scenario-1.json has the rest."""

    model_config = ConfigDict(extra="allow")


class _Named(_Open):
    """A fault of a schedule.

    Attributes:
        name: (``as``) by which a later step heals it.
        fault: its kind.
    """

    name: str = Field(default="", alias="as")
    fault: str = ""


class _Step(_Open):
    """A step of the schedule.

    Attributes:
        inject: a fault.
        hold: bytes on links.
    """

    inject: _Named = _Named()
    hold: _Named = _Named()


class _MixedFault(_Open):
    """A fault of the random mix.

    Attributes:
        fault: its kind.
        weight: how often it comes up in a round.
    """

    fault: str = ""
    weight: int = Field(default=1, ge=0, le=10_000)


class _Chaos(_Open):
    """Random faults.

    Attributes:
        faults: the mix.
    """

    faults: tuple[_MixedFault, ...] = ()


class _Cluster(_Open):
    """The cluster.

    Attributes:
        brokers: their number.
    """

    brokers: int = Field(default=3, ge=0, le=1_000)


class _Topic(_Open):
    """A topic.

    Attributes:
        name: of the topic.
        partitions: their number.
        replication_factor: the number of replicas of each.
        replicas: the brokers of every partition; null: the cluster chose.
    """

    name: str = ""
    partitions: int = Field(default=1, ge=0, le=100_000)
    replication_factor: int = Field(default=3, ge=0, le=1_000)
    replicas: tuple[Count, ...] | None = None


class _Scenario(_Open):
    """The resolved scenario.

    Attributes:
        cluster: the brokers.
        topics: those that were created.
        schedule: the steps that were performed; null: random faults.
        chaos: random faults; null: a schedule.
    """

    cluster: _Cluster = _Cluster()
    topics: tuple[_Topic, ...] = ()
    schedule: tuple[_Step, ...] | None = None
    chaos: _Chaos | None = None


class Configuration(BaseModel):
    """The resolved configuration. Which keys it has depends on what ran; these are known.

    Attributes:
        target: as ``--target`` spells it.
        scenario: with every default.
        knobs: of the replication protocol.
        settings: of the brokers.
        workload: its name and parameters.
        imported: where an imported history comes from, and what was assumed about it.
        reproduce: the command that runs it again.
    """

    model_config = ConfigDict(extra="allow")

    target: str = ""
    scenario: _Scenario = _Scenario()
    knobs: Mapping[str, Any] = {}
    settings: Mapping[str, Any] = {}
    workload: Mapping[str, Any] = {}
    imported: Mapping[str, Any] = {}
    reproduce: str = ""
