"""Defines the steps of a schedule: one validated model per kind of step. Pure.

Names of partitions are written as everywhere, ``ledger-0``. Offsets that end something are exclusive. Seconds are
of the run's own clock: real on real targets, virtual in the simulator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.json_schema import exactly_one, filled, given, when
from harness.model import NO_LEADER, TopicPartition
from harness.orders import Ending
from harness.selection import EndSelector

_STRICT = ConfigDict(frozen=True, extra="forbid")

_DEFAULT_WITHIN_S = 20.0

MAX_RECORDS = 100_000
"""The most records that one step sends to a partition."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
"""A name given by ``as``, ``group``, ``producer`` or ``records``."""

LONGEST_S = 1_000_000
"""The longest duration: twelve days."""

Seconds = Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)]
"""A duration."""

Age = Annotated[float, Field(ge=-1e9, le=1e9, allow_inf_nan=False)]
"""How many seconds ago: thirty years at most; negative: in the future."""

PartitionName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]+-[0-9]+$")]
"""A topic and the number of a partition: ``ledger-0``."""


class Where(BaseModel):
    """A step about some partitions.

    Attributes:
        topic: of the partitions; None: every topic.
        partition: their number; None: every number.
        within_s: after how many seconds the step fails if it has not succeeded.
    """

    model_config = _STRICT

    topic: str | None = None
    partition: int | None = Field(default=None, ge=0)
    within_s: Seconds = Field(default=_DEFAULT_WITHIN_S, gt=0)


def meant(partitions: Iterable[TopicPartition], where: Where) -> tuple[TopicPartition, ...]:
    """Those of ``partitions`` that a step selects."""
    return tuple(
        name for name in partitions if where.topic in (None, name.topic) and where.partition in (None, name.partition)
    )


class Send(Where):
    """Send records to each of the selected partitions, batch by batch, and wait for the answers.

    Each record has a name for ``final_logs`` and ``delivers``: those of ``records``, or, with ``per_partition``,
    ``m<n>``, where n is the number of records that the schedule had sent to that partition before.

    Attributes:
        per_partition: the number of records for each partition; or
        records: their names, the same for each partition; none are needed to end a transaction that is open.
        acks: of the request.
        batch: the number of records in a batch, which is one request.
        age_s: how long before now the records' CreateTime is; negative: in the future.
        expect: ``ok``: every record must be acknowledged; ``refused``: none may be; ``any``: any answer.
        retries: how often the client repeats a request that was refused, or not answered in
        retry_after_s: seconds.
        producer: a name: sends with the same one are of one producer, and share its order and sequence numbers.
        transactional_id: of its transactions; without it, the name of the producer. Of two producers with the same one
            the second fences the first off.
        idempotent: whether the producer is idempotent (KIP-98); needs ``producer``.
        transaction: the records of each partition are a transaction of ``producer``, which ends with ``commit``, or
            with ``abort``, after which none of them counts as acknowledged; ``open``: it does not end, and the
            producer's next send continues it on any partition.
        transaction_version: the producer speaks Kafka's protocol itself, with an epoch for each transaction (2,
            KIP-890) or without (0), sends each batch once, and keeps its epoch after an abort; without it, librdkafka.
        name: (``as``) with a name the schedule goes on at once, and ``until: {sent: name}`` waits for the answers.
    """

    model_config = ConfigDict(
        json_schema_extra={
            **exactly_one("per_partition", "records"),
            "allOf": [
                when("records", {"maxItems": 0, "type": "array"},
                      {"required": ["transaction"], "properties": {"transaction": {"enum": ["commit", "abort"]}}}),
                when("idempotent", {"const": True}, given("producer")),
                when("transaction", {"type": "string"},
                      {**given("producer"), "allOf": [{"properties": {"acks": {"const": "all"}}}]}),
                when("transaction_version", {"type": "integer"}, given("transaction")),
                when("transactional_id", {"type": "string"}, given("transaction")),
            ],
        }
    )  # fmt: skip

    per_partition: int | None = Field(default=None, ge=1, le=MAX_RECORDS)
    records: tuple[Name, ...] | None = Field(default=None, max_length=MAX_RECORDS)
    acks: Literal["all", 0, 1] = "all"
    batch: int = Field(default=1, ge=1)
    age_s: Age = 0.0
    expect: Literal["ok", "any", "refused"] = "ok"
    retries: int = Field(default=0, ge=0)
    retry_after_s: Seconds = Field(default=1.0, gt=0)
    producer: Name | None = None
    idempotent: bool = False
    transaction: Ending | None = None
    transaction_version: Literal[0, 2] | None = None
    transactional_id: Name | None = None
    name: str | None = Field(default=None, alias="as")

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if (self.per_partition is None) == (self.records is None):
            raise ValueError("write exactly one of per_partition and records.")
        if self.records == () and self.transaction not in ("commit", "abort"):
            raise ValueError("records is empty: nothing would be sent.")
        if self.idempotent and self.producer is None:
            raise ValueError("an idempotent send needs a producer: its sequence numbers are the producer's.")
        if self.transaction is not None and (self.producer is None or self.acks != "all"):
            raise ValueError("a transaction needs a producer and acks=all.")
        if self.transaction_version is not None and self.transaction is None:
            raise ValueError("transaction_version says how a transaction is run: write how it ends, too.")
        if self.transactional_id is not None and self.transaction is None:
            raise ValueError("transactional_id is of a transaction: write how it ends, too.")
        return self

    @property
    def count(self) -> int:
        """The number of records for each partition."""
        return self.per_partition or len(self.records or ())


class Hold(BaseModel):
    """Hold every byte back on directed links until ``release``: ``[[2, 1]]`` holds what 2 sends to 1.

    Equal to the fault ``partition`` with these links, and likewise proven.

    Attributes:
        links: pairs of a sender and a receiver: a broker, a selector such as ``leader``, or ``clients``.
        name: (``as``) by which ``release`` ends it.
    """

    model_config = _STRICT

    links: tuple[tuple[EndSelector, EndSelector], ...] = Field(min_length=1)
    name: Name = Field(alias="as")


class Elect(Where):
    """Ask the controller for an election of the selected partitions, as an operator does.

    Attributes:
        leader: the wanted leader; None: the preferred one.
        unclean: whether a replica outside the ISR may be elected.
        expect: ``ok``: the controller must do it; ``refused``: it must refuse; ``any``.
    """

    leader: int | None = Field(default=None, ge=0)
    unclean: bool = False
    expect: Literal["ok", "any", "refused"] = "ok"


class Commit(BaseModel):
    """Commit offsets for a consumer group, whatever it has read.

    Attributes:
        group: the consumer group.
        offsets: by partition, the offset of the next record to read.
        leader_epoch: the epoch of the last record read, which clients since KIP-320 commit, too; -1: an old client.
        expect: ``ok``: the coordinator must accept it; ``refused``: it must refuse; ``any``.
        within_s: after how many seconds the step fails if it has not succeeded.
    """

    model_config = _STRICT

    group: Name
    offsets: Mapping[PartitionName, Annotated[int, Field(ge=0)]] = Field(min_length=1)
    leader_epoch: int = Field(default=-1, ge=-1)
    expect: Literal["ok", "any", "refused"] = "ok"
    within_s: Seconds = Field(default=_DEFAULT_WITHIN_S, gt=0)


class Consume(Where):
    """A new member of a consumer group reads the selected partitions up to their high watermarks, and stops.

    Attributes:
        group: the consumer group.
        start: where it begins: at the ``committed`` offset, the ``beginning``, the ``end``, or the first record whose
            timestamp is not before a ``time`` (``offsetsForTimes``), and if there is none, at the end.
        age_s: how long before now that time is; negative: in the future; None: it begins at no time.
        reset: its ``auto.offset.reset``, for a position out of range or without a committed offset.
        checks_epochs: whether the client validates its position by leader epoch before it reads (KIP-320, 2.3).
        commit: whether it commits in the end, with the epoch of the last record if it ``checks_epochs``.
        expect: ``ok``: it must read up to the end without an error; ``reset``: its position must be out of range, and
            is reset by the policy; ``out_of_range``: as that, but without a policy, so that it fails; ``truncated``: it
            must detect by epochs that the log it had read was truncated; ``any``.
        delivers: by partition, the names of exactly the records that it must read.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                when("start", {"const": "time"}, given("age_s")),
                when("age_s", {"type": "number"}, {"required": ["start"], "properties": {"start": {"const": "time"}}}),
            ]
        }
    )

    group: Name
    start: Literal["committed", "beginning", "end", "time"] = "committed"
    age_s: Age | None = None
    reset: Literal["earliest", "latest", "none"] = "none"
    checks_epochs: bool = False
    commit: bool = False
    expect: Literal["ok", "reset", "out_of_range", "truncated", "any"] = "ok"
    delivers: Mapping[PartitionName, tuple[Name, ...]] = {}

    @model_validator(mode="after")
    def _begins_at_one_place(self) -> Self:
        if (self.age_s is not None) != (self.start == "time"):
            raise ValueError("start: time needs age_s, and nothing else takes it.")
        return self


class DeleteRecords(Where):
    """Ask the leaders of the selected partitions to delete the records before an offset (KIP-107).

    Attributes:
        before: the first offset to keep, or ``high_watermark``.
        expect: ``ok``: the leaders must do it; ``refused``: they must refuse; ``any``.
    """

    before: Annotated[int, Field(ge=0)] | Literal["high_watermark"]
    expect: Literal["ok", "any", "refused"] = "ok"


class SpoofFetch(Where):
    """Fetch as if a client were the follower ``replica`` (CVE-2018-1288).

    Attributes:
        to: the broker that receives it.
        replica: the follower's broker id in the request.
        offset: the fetch offset, which the leader takes for the follower's log end offset.
        leader_epoch: the current leader epoch in the request; -1: none, as from an old follower.
        last_fetched_epoch: the epoch of the last record that the follower claims to have; -1: none.
    """

    to: int = Field(ge=0)
    replica: int = Field(ge=0)
    offset: int = Field(ge=0)
    leader_epoch: int = Field(default=-1, ge=-1)
    last_fetched_epoch: int = Field(default=-1, ge=-1)


class Unavailable(Where):
    """The selected partitions have no leader for a while: the evidence for the outcome ``unavailable``.

    Attributes:
        for_s: for how many seconds.
    """

    for_s: Seconds = Field(default=1.0, ge=0)


class ReplicaState(BaseModel):
    """The state that the broker ``node`` must report of its replica; unset fields may have any value.

    Attributes:
        node: the broker's id.
        role: of the replica.
        leader: the broker that it follows, or is.
        leader_epoch: of that leader.
        log_start_offset: the first offset in its log.
        log_end_offset: one more than the last offset in its log.
        high_watermark: below which it takes records for committed.
    """

    model_config = _STRICT

    node: int = Field(ge=0)
    role: Literal["leader", "follower", "offline"] | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    high_watermark: int | None = None


class Committed(BaseModel):
    """What a consumer group must have committed.

    Attributes:
        group: the consumer group.
        offsets: by partition, the offset of the next record to read.
    """

    model_config = _STRICT

    group: Name
    offsets: Mapping[PartitionName, int] = Field(min_length=1)


class Until(Where):
    """Wait until all of this is observed at once.

    Attributes:
        leader: by the controller; -1: there is none.
        leader_epoch: by the controller.
        isr: by the controller, in any order.
        elr: the eligible leader replicas (KIP-966), likewise.
        replicas: the brokers' states of their own replicas.
        live: the brokers that have a session with the controller: exactly these.
        exited: brokers that have exited because of their protocol or their storage.
        committed: the committed offsets of a consumer group.
        sent: the ``as`` of a ``send`` whose answers must all have arrived.
        polled: up to which offset, exclusive, the tailing consumers must have read.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                *map(given, ("leader", "leader_epoch", "isr", "elr", "live", "committed", "sent", "polled")),
                *map(filled, ("replicas", "exited")),
            ]
        }
    )

    leader: int | None = Field(default=None, ge=-1)
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    elr: tuple[int, ...] | None = None
    replicas: tuple[ReplicaState, ...] = ()
    live: tuple[int, ...] | None = None
    exited: tuple[int, ...] = ()
    committed: Committed | None = None
    sent: str | None = None
    polled: int | None = None

    @property
    def brokers(self) -> tuple[int, ...]:
        """Every broker that it names."""
        leaders = (self.leader, *(one.leader for one in self.replicas))
        named = [node for node in leaders if node is not None and node != NO_LEADER]
        named += (one.node for one in self.replicas)
        return (*named, *(self.isr or ()), *(self.elr or ()), *(self.live or ()), *self.exited)

    @model_validator(mode="after")
    def _waits_for_something(self) -> Self:
        kinds = [name for name in type(self).model_fields if name not in Where.model_fields]
        if all(getattr(self, name) == type(self).model_fields[name].default for name in kinds):
            raise ValueError(f"nothing to wait for; write {', '.join(kinds[:-1])} or {kinds[-1]}.")
        return self
