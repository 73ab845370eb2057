"""A fault's proofs name the nodes that the fault is filed under.

A probe's sentence begins with its node (``node 1 is gone``) or its link (``0->1: a probe got lost``), one clause for
each, and the parameters of a fault of one node name it, too. Where these differ from the fault's ``nodes``, some row of
the table is about another fault, and the harmed node is not known: the run is ``INVALID``, what a fault might excuse is
``INDETERMINATE``, and the fault itself excuses nothing. A fault of nodes is filed under exactly the nodes that are
named; a proof about links may leave out an end. So it is with a fault that is filed under a broker that does not exist,
or under another kind than the scenario injects by that name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from checkers.views.expected import Expected
from checkers.views.row import Row
from faults import traits_of
from harness.model import CLIENTS, CONTROLLER, is_broker

_OF_CHAOS = re.compile(r"f\d+")
"""The names of chaos's faults; their proofs may name a broker that the runner restarts as well."""
_NODE = re.compile(r"(?:the clock of )?node ([\w-]+)[ :]")
_LINK = re.compile(r"([\w-]+)->([\w-]+)[ :]")


def misfiled(faults: Sequence[Row], wanted: Expected | None) -> list[str]:
    """One sentence for each fault whose nodes differ from those in its proof, or in its parameters."""
    return [sentence for fault in faults for sentence in _misfiled(fault, wanted)]


def filed(faults: Sequence[Row], wanted: Expected | None) -> list[Row]:
    """The faults that are not :func:`misfiled`: none else may excuse anything."""
    return [fault for fault in faults if not any(_misfiled(fault, wanted))]


def _misfiled(fault: Row, wanted: Expected | None) -> Iterator[str]:
    name, filed = f"Fault {fault['fault']!r} ({fault['kind']})", list(fault["nodes"])
    known = ", ".join(filed) or "no node"
    alone = not traits_of(fault["kind"]).cuts_links
    for what, named in (("proof", _named(fault["proof"])), ("proof of healing", _named(fault["heal_proof"]))):
        others = _others(named, filed, alone=alone)
        if others and fault["proven_ns"] is not None:
            yield f"{name} is filed under {known}, and its {what} is about {', '.join(others)}."
    meant = _parameters(fault).get("node")
    if isinstance(meant, str | int) and filed and _is_named(meant) and _others([str(meant)], filed, alone=alone):
        yield f"{name} is filed under {known}, and its parameters are about {meant}."
    strange = [
        node for node in filed if wanted and wanted.brokers and is_broker(node) and int(node) not in wanted.nodes
    ]
    if strange:
        yield f"{name} is filed under {', '.join(strange)}, and the configuration has no such broker."
    kinds = _kinds(fault, wanted) if wanted else ()
    if kinds and fault["kind"] not in kinds:
        yield f"{name} is filed as {fault['kind']}, and the scenario injects {', '.join(sorted(kinds))} by that name."


def _kinds(fault: Row, wanted: Expected) -> frozenset[str]:
    """The kinds that the scenario has by the fault's name; empty: it does not state them."""
    named = wanted.kinds.get(fault["fault"])
    if named is not None:
        return frozenset({named} - {""})
    return wanted.mix if _OF_CHAOS.fullmatch(fault["fault"]) else frozenset()


def _others(named: Sequence[str], filed: Sequence[str], *, alone: bool) -> list[str]:
    """Nodes that are named and not filed; of a fault of nodes ``alone`` all that are named, if more nodes are filed.

    A probe of links names some of them; a fault of nodes is filed under exactly those that it has harmed.
    """
    if alone and named and not all(any(_is_among(node, [one]) for node in named) for one in filed):
        return list(named)
    return [node for node in named if not _is_among(node, filed)]


def _named(proof: str | None) -> list[str]:
    """The nodes that a proof begins with; of a proof about links the ends of each."""
    first = _NODE.match(proof or "")
    if first is not None:
        return [first[1]]
    links = (_LINK.match(clause) for clause in (proof or "").split("; "))
    return sorted({end for link in links if link is not None for end in link.groups()} - {CLIENTS})


def _is_among(node: str, filed: Sequence[str]) -> bool:
    """Whether a fault is filed under a node; ``controller`` is each controller of a quorum, too."""
    return node in filed or any(node.startswith(f"{CONTROLLER}-") and one == CONTROLLER for one in filed)


def _is_named(meant: str | int) -> bool:
    """Whether a parameter is a node's name, and not what chooses one, as ``leader`` does."""
    return is_broker(str(meant)) or str(meant).startswith(CONTROLLER)


def _parameters(fault: Row) -> dict[str, object]:
    found = json.loads(fault["parameters"] or "{}")
    return found if isinstance(found, dict) else {}
