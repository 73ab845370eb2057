"""Is the evidence of a run whole? What is broken makes it INVALID, what has gaps decides nothing, and what is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from checkers.completeness.changes_are_recorded import unrecorded
from checkers.completeness.columns_are_filled import nulls
from checkers.completeness.configurations_agree import unasked
from checkers.completeness.decisions_are_numbered import missing_decisions
from checkers.completeness.guarantees_are_configured import MISSTATED, misstated
from checkers.completeness.history_is_complete import (
    idle,
    inconclusive,
    invalid,
    silent,
    unfinished,
    unharmed,
    unplaced,
    unrecovered,
)
from checkers.completeness.lives_are_explained import contradictions
from checkers.completeness.nodes_are_accounted import (
    broken_lives,
    broken_logs,
    broken_samples,
    missing_faults,
    missing_lives,
    nowhere,
    open_replicas,
    out_of_time,
    strangers,
    uneven_replicas,
    unplanned_partitions,
    unproven_faults,
    unproven_losses,
    unused_partitions,
)
from checkers.node_exit import blamed
from checkers.registry import KINDS
from checkers.verdicts.severity import Evidence
from checkers.views.configured import Configured, is_sampled, is_watched
from checkers.views.expected import Expected, reads_disks
from checkers.views.proofs_match import misfiled
from checkers.views.recovery import broken_unrest
from checkers.views.row import Row
from checkers.views.states import States
from harness.anomaly import Needs
from harness.facts import ClientFacts
from harness.findings import Answers, Finding, NodeLife
from harness.parts import Parts

_NO_CONFIGURATION = "run.json's configuration does not name the nodes and partitions of the run."
_HOLES: Mapping[str, Sequence[str]] = {
    "timeline": ("timeline", "uncounted", "untimely"),
    "faults": ("misfiled", "untimely", "missing"),
    MISSTATED: ("misfit", "foreign"),
}
"""By what has a gap then, the sorts of broken evidence that show one."""
_BROKEN_ROWS: Mapping[Needs, str] = {
    Needs.VALUES: "resent_values",
    Needs.TIMES: "rows_back_in_time",
    Needs.ENDS: "mismatched_ends",
}
"""By what has a gap then, the number of rows that show one."""


class Accounts(NamedTuple):
    """What is wrong with the evidence of a run.

    Attributes:
        broken: one sentence for each thing that makes the run INVALID.
        gaps: what is incomplete, by the values of ``Needs``, and :data:`MISSTATED`.
    """

    broken: Sequence[str]
    gaps: frozenset[str]


def account(run: Evidence, own: Answers, parts: Parts) -> Accounts:
    """What is wrong with the evidence.

    Args:
        run: the evidence.
        own: the engine's answers about the run.
        parts: what is known about it.
    """
    numbers, wanted = own.counts[run.manifest.run], parts.of(Configured).wanted
    unread = {table for table, sentences in run.unreadable.items() if sentences}
    broken = {
        "unfinished": unfinished(run.manifest),
        "unreadable": [sentence for sentences in run.unreadable.values() for sentence in sentences],
        "misfit": [*misstated(run.manifest), *unasked(run.manifest, numbers)],
        "invalid": invalid(own.history_gaps, numbers),
        "unplaced": unplaced(run.manifest, numbers),
        "timeline": _broken_timeline(own.lives, run.faults, wanted, unread, run.manifest.guarantees),
        "uncounted": [*parts.given_to(missing_decisions), *parts.given_to(unrecorded)],
        "unproven": unproven_faults(run.faults),
        "misfiled": misfiled(run.faults, wanted),
        "untimely": _untimely(run, parts),
        "contradicted": _contradicted(run, parts, unread, numbers),
        "unrest": broken_unrest(run.manifest.unrest),
        "blamed": parts.given_to(blamed),
        "strange": _strange_kinds(run),
        **(_unlike(run, own, wanted, unread) if wanted is not None else {"configuration": [_NO_CONFIGURATION]}),
    }
    said = {sort: list(sentences) for sort, sentences in broken.items()}
    gaps = unread | {table for table, sorts in _HOLES.items() if any(said.get(sort) for sort in sorts)}
    gaps |= {need.value for need, count in _BROKEN_ROWS.items() if numbers[count]}
    gaps |= {"history"} if own.history_gaps else set()
    gaps |= {"faults"} if unproven_losses(run.faults) else set()
    return Accounts([sentence for sentences in said.values() for sentence in sentences], frozenset(gaps))


def doubts(run: Evidence, own: Answers, parts: Parts, findings: Sequence[Finding]) -> list[str]:
    """One sentence for each thing that is not known, so that the run is INCONCLUSIVE; ``findings``: all of them."""
    numbers, configured = own.counts[run.manifest.run], parts.of(Configured)
    unaccounted = _unaccounted(parts.of(States), numbers, findings)
    wanted = configured.wanted
    return [
        *inconclusive(own.ends, unaccounted, numbers, brokers=is_watched(configured)),
        *(sentence for sort in (idle, silent, unharmed, unrecovered) for sentence in sort(run.manifest, numbers)),
        *(open_replicas(own.replicas, wanted) if wanted is not None else ()),
        *(uneven_replicas(own.replicas) if reads_disks(configured.guarantees) else ()),
        *(unused_partitions(own.ends, wanted) if wanted is not None else ()),
        *(unplanned_partitions(own.ends, wanted) if wanted is not None else ()),
    ]


def _unlike(run: Evidence, own: Answers, wanted: Expected, unread: set[str]) -> dict[str, list[str]]:
    """How the evidence differs from what the configuration names."""
    return {
        "missing": list(missing_faults(run.faults, wanted)) if "faults" not in unread else [],
        "foreign": list(strangers(own.lives, own.replicas, wanted)),
        "logs": list(broken_logs(own.replicas, wanted)) if "replica_logs" not in unread else [],
    }


def _untimely(run: Evidence, parts: Parts) -> list[str]:
    """What happened outside of the time of a run that came to its end, and whose nodes wrote rows until then."""
    guarantees = run.manifest.guarantees
    if run.manifest.state != "complete" or is_sampled(guarantees) or reads_disks(guarantees):
        return []
    return out_of_time(run.faults, parts.of(States).intervals, parts.of(ClientFacts))


def _contradicted(run: Evidence, parts: Parts, unread: set[str], numbers: Mapping[str, int]) -> list[str]:
    """Contradictions of nodes' and clients' rows with faults and endings, and gaps in them; of a run with a target."""
    if "target" not in run.manifest.configuration:
        return []
    explained = parts.given_to(contradictions) if "faults" not in unread else ()
    return [*nulls(parts.of(States), parts.of(ClientFacts), numbers), *explained]


def _strange_kinds(run: Evidence) -> list[str]:
    """The predicted kinds that no checker knows."""
    strange = sorted({one["kind"] for one in run.foreseen} - set(KINDS))
    return [f"run.json predicts {kind!r}, and there is no such anomaly." for kind in strange]


def _broken_timeline(
    lives: Sequence[NodeLife],
    faults: Sequence[Row],
    wanted: Expected | None,
    unread: set[str],
    guarantees: Mapping[str, Any],
) -> list[str]:
    if reads_disks(guarantees):
        return []  # of no node a life was recorded
    if is_sampled(guarantees):
        demanded = wanted if "timeline" not in unread else None
        return [*broken_samples(lives), *(nowhere(lives, demanded) if demanded else ())]
    return [*broken_lives(lives), *(missing_lives(lives, faults, wanted) if wanted else ())]


def _unaccounted(states: States, numbers: Mapping[str, int], findings: Sequence[Finding]) -> int:
    """How many acknowledgements are above every watermark; in a sampled timeline only those that were not lost.

    There the leader that gave them may have gone, and they with it, before a sample was taken.
    """
    lost = {(x.topic, x.partition, x.excuse): x.total for x in findings if x.kind == "lost-write"}
    return max(0, numbers["acked_unaccounted"] - (sum(lost.values()) if states.sampled else 0))
