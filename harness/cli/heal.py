"""``seawall heal``: cleans up after harnesses that were killed."""

from __future__ import annotations

import typer


def heal() -> None:
    """Stop what killed harnesses left running, mark their runs as abandoned, and gather what their nodes left.

    Every run begins with this, too; only this command and runs in containers search for containers without a journal.
    """
    from harness.runner import heal_leftovers
    from harness.scratch import swept

    for line in [*heal_leftovers(containers=True), *swept()] or ["Nothing to heal."]:
        typer.echo(line)
