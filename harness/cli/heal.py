"""``seawall heal``: finish the job of harnesses that were killed."""

from __future__ import annotations

import typer


def heal() -> None:
    """Stop what killed harnesses left running and mark their runs as abandoned.

    Every run begins with this, too; containers that no journal tells of are looked for here and by runs in containers.
    """
    from harness.runner import heal_leftovers

    for line in heal_leftovers(containers=True) or ["Nothing to heal."]:
        typer.echo(line)
