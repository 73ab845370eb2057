"""When things happen: the steps of an awaited schedule, and the seeded mix of random chaos. Pure.

A step waits for what it needs to see, never for time to pass: a schedule is exact on a busy machine, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

_STRICT = ConfigDict(frozen=True, extra="forbid")

_DEFAULT_WITHIN_S = 20.0

FaultMapping = Mapping[str, Any]
"""A fault as a scenario writes it: ``{fault: kill, node: leader}``. The runner parses it with ``faults.parse``."""

Span = tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]]
"""Shortest and longest, in seconds."""


class Send(BaseModel):
    """Send records, one at a time to each partition, and wait for the answers.

    Attributes:
        per_partition: how many records each partition gets.
        expect: ``ok``: every record must be acknowledged; ``any``: whatever comes.
        name: (``as``) with a name the schedule goes on at once, and ``until: {sent: name}`` waits for the answers.
    """

    model_config = _STRICT

    per_partition: int = Field(ge=1)
    acks: Literal["all", 0, 1] = "all"
    expect: Literal["ok", "any"] = "ok"
    within_s: float = Field(default=_DEFAULT_WITHIN_S, gt=0)
    name: str | None = Field(default=None, alias="as")


class ReplicaState(BaseModel):
    """What the broker ``node`` must say about its own replica; what is not written may be anything."""

    model_config = _STRICT

    node: int = Field(ge=0)
    role: Literal["leader", "follower", "offline"] | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    log_end_offset: int | None = None
    high_watermark: int | None = None


class Until(BaseModel):
    """Wait until all of this is observed at once.

    Attributes:
        topic: whose partitions are meant; None: those of every topic.
        partition: which one is meant; None: every one.
        leader: the leader that the controller has put in charge.
        isr: the in-sync replicas, in any order, as the controller knows them.
        replicas: what brokers say about their own replicas.
        sent: the ``as`` of a ``send`` whose answers must all have come.
        polled: up to which offset, exclusive, the tailing consumers must have read.
    """

    model_config = _STRICT

    topic: str | None = None
    partition: int | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    replicas: tuple[ReplicaState, ...] = ()
    sent: str | None = None
    polled: int | None = None
    within_s: float = Field(default=_DEFAULT_WITHIN_S, gt=0)

    @model_validator(mode="after")
    def _waits_for_something(self) -> Self:
        wanted = (self.leader, self.leader_epoch, self.isr, self.sent, self.polled)
        if not self.replicas and all(value is None for value in wanted):
            raise ValueError("nothing to wait for; write leader, leader_epoch, isr, replicas, sent or polled.")
        return self


class Step(BaseModel):
    """One step of a schedule: exactly one of its fields.

    Attributes:
        inject: a fault with a name: ``{fault: kill, node: 0, as: dead}``.
        heal: the name of an injected fault.
        wait_s: seconds to let pass. For what cannot be observed; prefer ``until``.
    """

    model_config = _STRICT

    send: Send | None = None
    inject: FaultMapping | None = None
    heal: str | None = None
    until: Until | None = None
    wait_s: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _is_one_step(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            what = " and ".join(given) or "nothing"
            raise ValueError(f"a step is exactly one of send, inject, heal, until and wait_s, not {what}.")
        return self


class Chaos(BaseModel):
    """Random faults under load.

    Attributes:
        faults: the mix. Besides its parameters a fault may have a ``weight`` (how often it comes up in a round,
            default 1) and a ``for_s`` of its own.
        interval_s: how long the cluster is left alone between two faults.
        for_s: how long a fault lasts.
    """

    model_config = _STRICT

    faults: tuple[FaultMapping, ...] = Field(min_length=1)
    interval_s: Span = (0.5, 1.5)
    for_s: Span = (1.0, 2.5)

    @model_validator(mode="after")
    def _spans_are_ordered(self) -> Self:
        for name, (shortest, longest) in (("interval_s", self.interval_s), ("for_s", self.for_s)):
            if shortest > longest:
                raise ValueError(f"{name}: the shortest, {shortest}, is longer than the longest, {longest}.")
        return self


def shuffled_rounds(weights: Sequence[int], seed: int) -> Iterator[int]:
    """Indices into ``weights`` for ever: each round is a shuffled bag that holds index i ``weights[i]`` times.

    So every index comes up in every round, however short the run, and no round looks like the last.
    """
    drawn = random.Random(f"{seed}:rounds")
    bag = [index for index, weight in enumerate(weights) for _ in range(weight)]
    while True:
        drawn.shuffle(bag)
        yield from bag


def wrong_names(steps: Sequence[Step]) -> Iterator[tuple[int, str, str]]:
    """Every name that is used before it is given or given twice: (index of the step, name, what is wrong)."""
    sends: set[str] = set()
    faults: set[str] = set()
    for index, step in enumerate(steps):
        yield from ((index, name, wrong) for name, wrong in _wrong_in(step, sends, faults))


def _wrong_in(step: Step, sends: set[str], faults: set[str]) -> Iterator[tuple[str, str]]:
    match step:
        case Step(send=Send(name=str(name))):
            if name in sends:
                yield name, "names a send twice"
            sends.add(name)
        case Step(inject={"as": str(name)}):
            if name in faults:
                yield name, "names a fault twice"
            faults.add(name)
        case Step(heal=str(name)) if name not in faults:
            yield name, "was not injected before"
        case Step(until=Until(sent=str(name))) if name not in sends:
            yield name, "was not sent before"
        case _:
            pass
