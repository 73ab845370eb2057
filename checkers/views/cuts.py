"""Which links a fault has cut, and which nodes it isolates or pauses, by the parameters that the run recorded."""

from __future__ import annotations

import json

from checkers.views.fault_journal import FaultJournal
from checkers.views.row import Row
from faults import traits_of
from harness.downtime import in_force
from harness.fault import ProcessEffect
from harness.model import CLIENTS

MAY_BE_DEPOSED = "a coordinator that was cut off, or had stood still, may have answered from what it knew"
"""Why it cannot be decided whether a finding about a group is excused after a fault that may depose a broker."""

LEARNS_NS = 5_000_000_000
"""How long a broker that is back may take, at the most, to learn of its successor: longer than a session."""


def links_of(fault: Row) -> list[set[str]] | None:
    """The links that a partition has cut, each as its two ends, by name; None: it is a fault of nodes."""
    found = json.loads(fault["parameters"] or "{}")
    links = found.get("links") if isinstance(found, dict) else None
    return None if links is None else [{str(end) for end in link} for link in links]


def ends_of(fault: Row) -> set[str]:
    """The names of its nodes, and of the ends of its links; ``clients`` is one, too."""
    return {*fault["nodes"], *(end for link in links_of(fault) or () for end in link)}


def cuts_brokers_off(fault: Row) -> bool | None:
    """Whether a fault cuts links other than those of clients; None: it cuts none."""
    links = links_of(fault)
    return None if links is None else any(CLIENTS not in link for link in links)


def may_be_deposed(journal: FaultJournal, since_ns: int, until_ns: int) -> bool:
    """Whether a fault of that time may have kept a coordinator from learning of its successor."""
    return any(
        _may_depose(fault) and in_force(fault["injected_ns"], fault["heal_proven_ns"], since_ns, until_ns)
        for fault in journal.faults
    )


def _may_depose(fault: Row) -> bool:
    """Whether a fault keeps a broker from learning of its successor: it cuts it off, or has it stand still."""
    cuts = cuts_brokers_off(fault)
    return traits_of(fault["kind"]).process is ProcessEffect.PAUSES if cuts is None else cuts
