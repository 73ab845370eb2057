"""Which links a partition fault has cut, and which nodes it isolates, by the parameters that the run recorded."""

from __future__ import annotations

import json

from checkers.views.row import Row


def links_of(fault: Row) -> list[set[str]] | None:
    """The links that a partition has cut, each as its two ends, by name; None: it is a fault of nodes."""
    found = json.loads(fault["parameters"] or "{}")
    links = found.get("links") if isinstance(found, dict) else None
    return None if links is None else [{str(end) for end in link} for link in links]


def ends_of(fault: Row) -> set[str]:
    """The names of its nodes, and of the ends of its links; ``clients`` is one, too."""
    return {*fault["nodes"], *(end for link in links_of(fault) or () for end in link)}
