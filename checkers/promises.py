"""The promises that are checked, in the order in which causes come before their consequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Protocol

from checkers import (
    acked_writes_are_read,
    acked_writes_survive,
    clusters_recover,
    commits_are_kept,
    committed_is_not_cut,
    committed_is_replicated,
    committed_reads_stay,
    deletions_are_ordered,
    elections_are_legal,
    epochs_agree,
    epochs_only_rise,
    fetches_are_fenced,
    followers_only_rise,
    laggards_leave,
    leaders_are_complete,
    lineages_match,
    logs_are_whole,
    logs_keep_records,
    logs_outlive_processes,
    metadata_agrees,
    no_duplicates,
    nodes_stay_up,
    offsets_agree,
    polls_are_ordered,
    reads_are_of_writes,
    refusals_are_justified,
    replicas_agree,
    sends_are_ordered,
    transactions_are_atomic,
    transactions_are_isolated,
    transactions_are_marked,
    watermarks_advance,
    watermarks_only_rise,
    watermarks_wait,
)
from checkers.conclusion import Conclusive
from checkers.rows import RunRows
from checkers.witnesses import Witnesses
from harness.anomaly import AnomalyKind
from harness.checker import Evidence
from spark_analysis.answer import Finding


class Promise(Protocol):
    """One promise: a module that says in its docstring what is promised, and how a breach is judged.

    A new one is a module with these names, a line in :data:`PROMISES`, and the same question put to Spark in
    ``spark_analysis``.
    """

    @property
    def KINDS(self) -> tuple[AnomalyKind, ...]:  # noqa: N802 - a module's constant
        """The kinds of anomaly that breach it."""
        ...

    def find(self, rows: RunRows) -> Iterator[Finding]:
        """The reference: every breach in one run."""
        ...

    def why(self, finding: Finding) -> str:
        """A breach in a sentence."""
        ...

    def evidence(self, finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
        """The rows that show a breach."""
        ...


CONCLUSIONS: tuple[Conclusive, ...] = (
    nodes_stay_up,
    epochs_agree,
    fetches_are_fenced,
    epochs_only_rise,
    elections_are_legal,
    metadata_agrees,
    leaders_are_complete,
    watermarks_wait,
    followers_only_rise,
    laggards_leave,
    watermarks_advance,
    refusals_are_justified,
    committed_is_not_cut,
    logs_are_whole,
    logs_outlive_processes,
    lineages_match,
    clusters_recover,
    deletions_are_ordered,
    transactions_are_isolated,
)
"""The promises that are judged by facts, by the same code for both engines."""

PROMISES: tuple[Promise, ...] = (
    acked_writes_survive,
    committed_reads_stay,
    replicas_agree,
    logs_keep_records,
    offsets_agree,
    reads_are_of_writes,
    no_duplicates,
    acked_writes_are_read,
    transactions_are_atomic,
    transactions_are_marked,
    sends_are_ordered,
    polls_are_ordered,
    commits_are_kept,
    watermarks_only_rise,
    committed_is_replicated,
)

KINDS: Mapping[str, AnomalyKind] = MappingProxyType(
    {kind.name: kind for kinds in (*(p.KINDS for p in PROMISES), *(c.KINDS for c in CONCLUSIONS)) for kind in kinds}
)
"""Every kind of anomaly by its name, causes before their consequences."""
