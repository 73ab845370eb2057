"""What a rule may say of how its own findings are judged: functions that its module may have besides its rule.

The verdict asks a finding's rule for them, so that what one kind alone needs stands beside its rule. Where a function
is a property here, the types of its parameters name what it is given of the evidence, as a rule's do; a
:class:`~harness.findings.Finding` and the run's :class:`~harness.history.run_directory.Manifest` are among that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from harness.anomaly import Needs
from harness.excuse import Excuse
from harness.findings import Finding
from harness.history.run_directory import Manifest


@runtime_checkable
class NeedsOfFinding(Protocol):
    """A rule whose findings do not all rely on the same evidence."""

    def needs(self, finding: Finding) -> frozenset[Needs]:
        """The evidence that must be complete for this finding, instead of what its kind relies on."""
        ...


@runtime_checkable
class OpenByNature(Protocol):
    """A rule with findings that no complete evidence decides."""

    def left_open(self, finding: Finding, guarantees: Mapping[str, Any]) -> str:
        """Why this one is INDETERMINATE, part of a sentence; empty: it is not."""
        ...


@runtime_checkable
class ExcusedInstead(Protocol):
    """A rule whose findings a run's configuration may excuse, which no row shows."""

    def excused_by(self, finding: Finding, manifest: Manifest) -> Excuse | None:
        """The excuse that takes the place of the finding's own; None: none does."""
        ...


@runtime_checkable
class AboutDamage(Protocol):
    """A rule of which a finding may be excused by a fault that damages logs, and only by such a one."""

    def may_be_damage(
        self,
        finding: Finding,
    ) -> bool:
        """Whether the logs that this one is about are damaged, whatever damaged them."""
        ...


@runtime_checkable
class Permitted(Protocol):
    """A rule whose findings a run's configuration may permit without one of the excuses."""

    def permitted(
        self,
        finding: Finding,
    ) -> str:
        """Why it permits this one, part of a sentence; empty: it does not."""
        ...


@runtime_checkable
class Doubted(Protocol):
    """A rule whose findings something may explain that no table shows."""

    @property
    def doubt(self) -> Callable[..., str]:
        """Why it cannot be decided whether that excuses this one, part of a sentence; empty: it does not."""
        ...


@runtime_checkable
class PartOfAnother(Protocol):
    """A rule on facts whose finding may be part of another finding, which is then reported alone."""

    def is_part_of(self, finding: Finding, other: Finding, *, other_alone_is_excused: bool) -> bool:
        """Whether this one is part of ``other``, which may be excused although this one is not."""
        ...
