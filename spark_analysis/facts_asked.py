"""Computes the facts of :mod:`harness.facts` with Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from harness.facts import (
    AckFacts,
    AcksBelowMinIsr,
    ClientFacts,
    Dependency,
    Facts,
    FirstAck,
    Lag,
    LogEpoch,
    LogFacts,
    LostRange,
    NodeFacts,
    ProducerLog,
    ReadEpoch,
    Refusal,
    Silence,
    Stall,
    Standing,
    StateInterval,
    UnfencedRead,
    Unwatched,
)
from harness.metadata_facts import MetadataEpoch, MetadataRefusal, ToldStart
from spark_analysis.acks_below_min_isr import acks_below_min_isr
from spark_analysis.dependencies import dependencies
from spark_analysis.log_facts import log_epochs, producer_logs
from spark_analysis.metadata import metadata_epochs, metadata_refusals, told_starts
from spark_analysis.read_epochs import read_epochs, unfenced_reads
from spark_analysis.refusals import refusals
from spark_analysis.silences import first_acks, silences

QUESTIONS_OF_FACT: Mapping[str, Callable[..., DataFrame | None]] = {
    "log_epoch": log_epochs,
    "producer_log": producer_logs,
    "silence": silences,
    "first_ack": first_acks,
    "read_epoch": read_epochs,
    "unfenced_read": unfenced_reads,
    "refusal": refusals,
    "acks_below_min_isr": acks_below_min_isr,
    "dependency": dependencies,
    "metadata_epoch": metadata_epochs,
    "metadata_refusal": metadata_refusals,
    "told_start": told_starts,
}
"""By name, how the rows of each sort of facts are found that do not rest on findings; None: there are none.

Each takes the views that its parameters name (:class:`harness.parts.Parts`).
"""


def facts_of(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Facts:
    """The facts from rows by those names, which lack what is null."""
    return Facts(
        NodeFacts(
            intervals=[_stretch(row) for row in found.get("interval", ())],
            lags=[Lag(**row) for row in found.get("lag", ())],
            stalls=[Stall(**{**row, "isr": tuple(row["isr"])}) for row in found.get("stall", ())],
            unwatched=sorted(Unwatched(**row) for row in found.get("unwatched", ())),
            metadata=[MetadataEpoch(**row) for row in found.get("metadata_epoch", ())],
            metadata_refusals=[MetadataRefusal(**row) for row in found.get("metadata_refusal", ())],
            told_starts=sorted(ToldStart(**row) for row in found.get("told_start", ())),
        ),
        LogFacts(
            log_epochs=[LogEpoch(**_whole(LogEpoch._fields, row)) for row in found.get("log_epoch", ())],
            producer_logs=[ProducerLog(**_whole(ProducerLog._fields, row)) for row in found.get("producer_log", ())],
        ),
        ClientFacts(
            silences=[Silence(**row) for row in found.get("silence", ())],
            first_acks=[FirstAck(**row) for row in found.get("first_ack", ())],
            read_epochs=sorted(ReadEpoch(**row) for row in found.get("read_epoch", ())),
            unfenced_reads=sorted(UnfencedRead(**row) for row in found.get("unfenced_read", ())),
            refusals=[_refusal(row) for row in found.get("refusal", ())],
            dependencies=[Dependency(**row) for row in found.get("dependency", ())],
        ),
        AckFacts(
            lost_ranges=[_lost_range(row) for row in found.get("lost_range", ())],
            acks_below_min_isr=[AcksBelowMinIsr(**row) for row in found.get("acks_below_min_isr", ())],
        ),
    )


def _stretch(row: Mapping[str, Any]) -> StateInterval:
    whole = _whole(StateInterval._fields, row)
    isr: Iterable[int] | None = whole["isr"]
    return StateInterval(**{**whole, "isr": None if isr is None else tuple(isr)})


def _lost_range(row: Mapping[str, Any]) -> LostRange:
    whole = _whole(LostRange._fields, row)
    kept: Iterable[int] = whole["kept"]
    return LostRange(**{**whole, "kept": tuple(kept)})


def _refusal(row: Mapping[str, Any]) -> Refusal:
    standing: Mapping[str, int] | None = row.get("standing")
    return Refusal(**{**row, "standing": None if standing is None else Standing(**standing)})


def _whole(names: Iterable[str], row: Mapping[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(names) | dict(row)
