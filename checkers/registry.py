"""The promises that are checked, in the order in which causes come before their consequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from checkers import (
    ack_below_min_isr,
    altered_record,
    committed_cut,
    defective_log,
    duplicate,
    epoch_regression,
    follower_hw_regression,
    group_repeat,
    group_skip,
    hw_regression,
    illegal_isr,
    incomplete_leader,
    inconsistent_epochs,
    inconsistent_offsets,
    laggard_in_sync,
    lineage_break,
    lost_acknowledgement,
    lost_commit,
    lost_key,
    lost_topic,
    lost_write,
    metadata_divergence,
    node_exit,
    poll_order,
    replica_divergence,
    send_order,
    shrunk_log,
    stale_commit,
    stalled_watermark,
    stuck,
    torn_transaction,
    transaction_cycle,
    two_owners,
    unfenced_read,
    unfounded_lookup,
    unfounded_read,
    unfounded_reset,
    unjustified_advance,
    unjustified_refusal,
    unprocessed,
    unseen,
    vanished_read,
    withheld_record,
    wrong_deletion,
    wrong_marker,
)
from checkers.views.conclusion import Conclusion, FactRule
from checkers.views.configured import Configured
from checkers.views.fault_journal import FaultJournal
from checkers.views.frames import Frames
from checkers.views.log_epochs import LogEpochs
from checkers.views.runner_report import RunnerReport
from checkers.views.states import States
from checkers.views.witnesses import Witnesses
from harness.anomaly import AnomalyKind
from harness.checker import Attribution, Evidence
from harness.facts import AckFacts, ClientFacts, LogFacts, NodeFacts
from harness.findings import Finding
from harness.parts import Parts, named_by
from harness.plugins import Registry


class Promise(Protocol):
    """One promise: a module whose docstring states what is promised, and how a breach is judged.

    A new one is a module with these names, a line in :data:`PROMISES`, and the same question put to Spark in the
    module of ``spark_analysis`` that has the same file name.
    """

    __name__: str

    @property
    def KINDS(self) -> tuple[AnomalyKind, ...]:  # noqa: N802 - a module's constant
        """The kinds of anomaly that breach it."""
        ...

    @property
    def find(self) -> Callable[..., Iterable[Finding]]:
        """Reference: every breach in one run, by those views of it that its parameters name (``checkers.views``)."""
        ...

    def why(self, finding: Finding) -> str:
        """A breach in a sentence."""
        ...

    def evidence(self, finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
        """The rows that show a breach."""
        ...


@runtime_checkable
class AboutClients(Protocol):
    """A rule, on facts or not, about what clients report, so that a wire tap shows whose a breach is."""

    def attribute(self, finding: Finding, frames: Frames) -> Attribution:
        """Whose a breach is, by the reports that it rests on."""
        ...


CONCLUSIONS: tuple[FactRule, ...] = (
    lost_topic,
    node_exit,
    inconsistent_epochs,
    unfenced_read,
    epoch_regression,
    illegal_isr,
    metadata_divergence,
    incomplete_leader,
    ack_below_min_isr,
    follower_hw_regression,
    laggard_in_sync,
    stalled_watermark,
    unjustified_refusal,
    committed_cut,
    defective_log,
    shrunk_log,
    lineage_break,
    stuck,
    wrong_deletion,
    transaction_cycle,
)
"""The rules on facts, run by the same code for both engines."""

PROMISES: tuple[Promise, ...] = (
    lost_write,
    vanished_read,
    replica_divergence,
    altered_record,
    inconsistent_offsets,
    unfounded_read,
    duplicate,
    unseen,
    torn_transaction,
    wrong_marker,
    send_order,
    poll_order,
    unfounded_lookup,
    unfounded_reset,
    group_skip,
    group_repeat,
    lost_commit,
    stale_commit,
    two_owners,
    unprocessed,
    lost_key,
    lost_acknowledgement,
    withheld_record,
    hw_regression,
    unjustified_advance,
)

RULES: tuple[str, ...] = tuple(promise.__name__.rpartition(".")[2] for promise in PROMISES)
"""The file names of the promises' modules, by which Spark finds its questions."""

_OWN: Mapping[str, AnomalyKind] = MappingProxyType(
    {kind.name: kind for kinds in (*(p.KINDS for p in PROMISES), *(c.KINDS for c in CONCLUSIONS)) for kind in kinds}
)


def _flaw(name: str, loaded: Any) -> str:
    """What is wrong with a plugin's checker."""
    del name
    kinds = getattr(loaded, "KINDS", None)
    if not (isinstance(kinds, tuple) and kinds and all(isinstance(kind, AnomalyKind) for kind in kinds)):
        return "its KINDS is no tuple of AnomalyKind, see checkers/views/conclusion.py."
    if taken := sorted({kind.name for kind in kinds} & set(_OWN)):
        return f"its kind {taken[0]!r} is one of seawall's own."
    known = {kind.name for kind in kinds} | set(_OWN)
    if strange := sorted({cause for kind in kinds for cause in kind.follows_from} - known):
        return f"one of its kinds follows from {strange[0]!r}, and there is no such kind."
    if not callable(getattr(loaded, "conclude", None)):
        return "it does not define 'conclude'."
    try:
        named = named_by(loaded.conclude)
    except (KeyError, NameError, TypeError, ValueError):
        return "a parameter of its 'conclude' has no type at run time."
    unknown = sorted(name for name, kind in named.items() if kind not in _GIVEN)
    return f"its 'conclude' takes {unknown[0]!r}, of a type that no rule is given." if unknown else ""


_GIVEN = frozenset(
    {States, LogEpochs, Configured, FaultJournal, RunnerReport, NodeFacts, LogFacts, ClientFacts, AckFacts}
)
"""What the parameters of a rule on facts may be, see :mod:`checkers.views.conclusion`."""

CHECKERS: Registry[FactRule] = Registry("seawall.checkers", {}, _flaw)
"""The checkers of installed plugins: each is asked about every run."""


def conclude(parts: Parts) -> Iterator[Conclusion]:
    """What the rules on facts find in a run, plugins' checkers last.

    Raises:
        EnvironmentFault: a plugin's checker cannot be used, or has concluded what it may not; without it, a run would
            pass that it may object to.
    """
    for rule in CONCLUSIONS:
        yield from parts.given_to(rule.conclude)
    for name, checker in CHECKERS.items():
        declared = {kind.name for kind in checker.KINDS}
        for one in parts.given_to(checker.conclude):
            is_one = isinstance(one, Conclusion)
            CHECKERS.require(name, holds=is_one, else_why=f"it concluded {one!r}, which is no Conclusion")
            kind = one.finding.kind
            CHECKERS.require(name, holds=kind in declared, else_why=f"it found {kind!r}, which is not in its KINDS")
            yield one


def rule_of(kind: str) -> object:
    """The module, or a plugin's object, of the rule that finds a kind; see :mod:`checkers.views.own_judgements`."""
    return _rules()[kind]


@cache
def _rules() -> Mapping[str, object]:
    rules: tuple[Promise | FactRule, ...] = (*PROMISES, *CONCLUSIONS, *CHECKERS.values())
    return MappingProxyType({kind.name: rule for rule in rules for kind in rule.KINDS})


class _Kinds(Mapping[str, AnomalyKind]):
    """Kinds by name; plugins are loaded when one is first looked up."""

    @cached_property
    def _known(self) -> Mapping[str, AnomalyKind]:
        added = {kind.name: kind for checker in CHECKERS.values() for kind in checker.KINDS}
        return MappingProxyType({**_OWN, **added})

    def __getitem__(self, name: str) -> AnomalyKind:
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


KINDS: Mapping[str, AnomalyKind] = _Kinds()
"""Every kind of anomaly by its name, causes before their consequences; those of plugins last."""
