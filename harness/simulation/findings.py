"""The violations that a witness has seen in one run."""

from __future__ import annotations

from collections.abc import Callable

from harness.checker import Verdict
from harness.model import Offset
from harness.simulation.violations import Violation
from harness.simulation.witnessed import Cluster


class Findings:
    """See the module.

    Args:
        cluster: the time at which something is seen.
        report: is called with each violation.

    Attributes:
        violations: in the order in which they happened.
    """

    def __init__(self, cluster: Cluster, report: Callable[[Violation], None]) -> None:
        self.violations: list[Violation] = []
        self._cluster = cluster
        self._report = report
        self._known: set[tuple[str, str, tuple[int, ...], Verdict]] = set()

    def accuse(
        self,
        invariant: str,
        kind: str,
        why: str,
        *,
        offset: Offset | None = None,
        value: int | None = None,
        nodes: tuple[int, ...] = (),
        verdict: Verdict = Verdict.VIOLATION,
        once: bool = True,
    ) -> None:
        """Note a violation; ``once``: that the same replicas break the same invariant again is no news.

        One that is excused hides none that is not.
        """
        key = (invariant, kind, nodes, verdict)
        if once and key in self._known:
            return
        self._known.add(key)
        cluster = self._cluster
        found = Violation(invariant, kind, offset, value, nodes, cluster.now_ns, cluster.events, verdict, why)
        self.violations.append(found)
        self._report(found)


def excused_if(excused: bool) -> Verdict:
    """The verdict on a violation that the configuration may have given away."""
    return Verdict.DOCUMENTED if excused else Verdict.VIOLATION
