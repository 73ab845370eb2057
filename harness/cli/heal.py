"""``seawall heal``: cleans up after harnesses that were killed."""

from __future__ import annotations

from typing import Annotated

import typer

Forget = Annotated[
    bool,
    typer.Option(
        "--forget", help="Give up what cannot be removed, such as the topics of a cluster that is gone for good."
    ),
]


def heal(*, forget: Forget = False) -> None:
    """Stop what killed harnesses left running, mark their runs as abandoned, and gather what their nodes left.

    Every run begins with this, too; what no journal names, such as containers, is searched for by this command, and by
    runs on a target that leaves such.
    """
    from harness.runner import heal_leftovers
    from harness.scratch import swept
    from harness.targets.kinds import KINDS

    for line in [*heal_leftovers(KINDS, forgets=forget), *swept()] or ["Nothing to heal."]:
        typer.echo(line)
