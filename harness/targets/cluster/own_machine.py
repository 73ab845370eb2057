"""Which nodes of a running cluster are on the machine on which seawall runs, by the ids of the machines' boots."""

from __future__ import annotations

from collections.abc import Iterable

from harness.births import boot
from harness.targets.cluster.commanded_node import CommandedNode


def locked_out(nodes: Iterable[CommandedNode]) -> str | None:
    """From which node cuts would take seawall's own way to mend them, in a clause; None: from none.

    A cut drops every packet from one node's address to another's, those of a shell that seawall runs there, too.

    Raises:
        EnvironmentFault: a node cannot be asked for its machine.
    """
    here: list[str] = []
    elsewhere: list[str] = []
    for node in nodes:
        (here if node.boot_id() == boot() else elsewhere).append(node.name)
    if not here or not elsewhere:
        return None
    dropped = f"what mends node {elsewhere[0]} would be dropped there"
    return f"seawall runs on the machine of node {here[0]}, so that {dropped}"
