"""Defines the steps of a schedule, and the seeded mix of random chaos. Pure.

A step waits for a condition, not for time to pass, so a schedule is exact on a busy machine, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.json_schema import Schema, exactly_one
from harness.steps import (
    Commit,
    Consume,
    DeleteRecords,
    Elect,
    Hold,
    Seconds,
    Send,
    SpoofFetch,
    Unavailable,
    Until,
    Where,
)

_STRICT = ConfigDict(frozen=True, extra="forbid")

FaultMapping = Mapping[str, Any]
"""A fault as a scenario writes it: ``{fault: kill, node: leader}``. The runner parses it with ``faults.parse``."""

Span = tuple[Seconds, Seconds]
"""Shortest and longest, in seconds."""

GenerationRange = Annotated[str, Field(pattern=r"^[0-9.]+(-[0-9.]+)?$")]
"""A protocol generation, ``"0.10"``, or a range of them, both ends included: ``"0.11-2.0.1"``."""


def _is_one_kind(schema: Schema) -> None:
    schema |= exactly_one(*(name for name in schema["properties"] if name != "generations"))


class Step(BaseModel):
    """One step of a schedule: exactly one of its fields, besides ``generations``.

    Attributes:
        send: records, and waits for the answers.
        inject: a fault with a name: ``{fault: kill, node: 0, as: dead}``.
        heal: the name of an injected fault.
        hold: every byte back on directed links.
        release: the name of a ``hold``.
        elect: leaders, as an operator does.
        commit: offsets of a consumer group.
        consume: as a new member of a consumer group.
        delete_records: before an offset.
        spoof_fetch: as if a client were a follower.
        until: waits until this is observed.
        unavailable: the partitions have no leader meanwhile.
        sync: brokers whose written bytes all reach the disk now.
        wait_s: seconds to let pass. For what cannot be observed; prefer ``until``.
        generations: those on which the step is performed; None: all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=_is_one_kind)

    send: Send | None = None
    inject: FaultMapping | None = None
    heal: str | None = None
    hold: Hold | None = None
    release: str | None = None
    elect: Elect | None = None
    commit: Commit | None = None
    consume: Consume | None = None
    delete_records: DeleteRecords | None = None
    spoof_fetch: SpoofFetch | None = None
    sync: tuple[Annotated[int, Field(ge=0)], ...] | None = Field(default=None, min_length=1)
    until: Until | None = None
    unavailable: Unavailable | None = None
    wait_s: Seconds | None = Field(default=None, gt=0)
    generations: tuple[GenerationRange, ...] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _is_one_step(self) -> Self:
        kinds = [name for name in type(self).model_fields if name != "generations"]
        given = [name for name in kinds if getattr(self, name) is not None]
        if len(given) != 1:
            what = " and ".join(given) or "nothing"
            raise ValueError(f"a step is exactly one of {', '.join(kinds[:-1])} and {kinds[-1]}, not {what}.")
        return self

    @property
    def kind(self) -> str:
        """The one field that is given."""
        kinds = (name for name in type(self).model_fields if name != "generations")
        return next(name for name in kinds if getattr(self, name) is not None)

    @property
    def name(self) -> str | None:
        """The name that the step gives to a fault."""
        return self.hold.name if self.hold else (self.inject or {}).get("as")

    @property
    def partitions(self) -> list[str]:
        """The partitions that the step names one by one."""
        if self.until and self.until.committed:
            return [*self.until.committed.offsets]
        return [*(self.commit.offsets if self.commit else ()), *(self.consume.delivers if self.consume else ())]

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers that the step names, besides those of a fault."""
        match self:
            case Step(sync=tuple() as nodes):
                return nodes
            case Step(elect=Elect(leader=int(leader))):
                return (leader,)
            case Step(spoof_fetch=SpoofFetch(to=to, replica=replica)):
                return to, replica
            case Step(until=Until() as until):
                return until.brokers
        return ()

    @property
    def where(self) -> Where | None:
        """The part of the step that selects partitions, if there is one."""
        parts = (self.send, self.elect, self.consume, self.delete_records, self.spoof_fetch, self.until,
                 self.unavailable)  # fmt: skip
        return next((part for part in parts if part is not None), None)


class Chaos(BaseModel):
    """Random faults under load.

    Attributes:
        faults: the mix. Besides its parameters a fault may have a ``weight`` (how often it comes up in a round,
            default 1) and a ``for_s`` of its own.
        interval_s: shortest and longest time in seconds without faults between two of them; of several at once, between
            their beginnings.
        for_s: shortest and longest time in seconds that a fault lasts.
        at_once: how many faults may be in force at one time, besides those that only move a clock. With 1 each waits
            until every ISR is full again.
        budget: which may be in force at once: no more than the configuration promises to survive, or ``any``; see
            :mod:`harness.runner.fault_budget`.
    """

    model_config = _STRICT

    faults: tuple[FaultMapping, ...] = Field(min_length=1)
    interval_s: Span = (0.5, 1.5)
    for_s: Span = (1.0, 2.5)
    at_once: int = Field(default=1, ge=1, le=9)
    budget: Literal["promised", "any"] = "promised"

    @model_validator(mode="after")
    def _spans_are_ordered(self) -> Self:
        for name, (shortest, longest) in (("interval_s", self.interval_s), ("for_s", self.for_s)):
            if shortest > longest:
                raise ValueError(f"{name}: the shortest, {shortest}, is longer than the longest, {longest}.")
        return self


def shuffled_rounds(weights: Sequence[int], seed: int) -> Iterator[int]:
    """Indices into ``weights`` for ever: each round is a shuffled bag that holds index i ``weights[i]`` times.

    So every index comes up in every round.
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
        case Step(inject={"as": str(name)}) | Step(hold=Hold(name=name)):
            if name in faults:
                yield name, "names a fault twice"
            faults.add(name)
        case Step(heal=str(name)) if name not in faults:
            yield name, "was not injected before"
        case Step(release=str(name)) if name not in faults:
            yield name, "was not held before"
        case Step(until=Until(sent=str(name))) if name not in sends:
            yield name, "was not sent before"
        case _:
            pass
