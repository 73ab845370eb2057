"""``seawall import jepsen`` and ``seawall export jepsen``: histories from and for Jepsen."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.terminal import tell
from harness.errors import ExitCode

imports = typer.Typer(help="Read another tool's history into a run directory.", no_args_is_help=True)
exports = typer.Typer(help="Write a run's history for another tool.", no_args_is_help=True)


@imports.callback()
def _imports() -> None: ...


@exports.callback()
def _exports() -> None: ...


class Isolation(StrEnum):
    """The isolation level of the consumers."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


@imports.command("jepsen")
def import_jepsen(
    history: Annotated[Path, typer.Argument(metavar="HISTORY.edn", help="The history of a Jepsen Kafka test.")],
    out: Annotated[Path, typer.Option(metavar="RUN_DIR", help="The run directory to make; must not exist.")],
    acks: Annotated[str, typer.Option(metavar="all|1|0", help="What producers waited for.")] = "all",
    isolation: Annotated[Isolation, typer.Option(help="What consumers were shown.")] = Isolation.READ_COMMITTED,
    idempotence: Annotated[bool, typer.Option(help="Whether producers were idempotent.")] = True,
    unclean_election: Annotated[bool, typer.Option(help="Whether unclean elections were allowed.")] = False,
    retention: Annotated[bool, typer.Option(help="Whether records may expire.")] = False,
) -> int:
    """Import a Jepsen Kafka history, for `seawall check`. Key k becomes partition k of the topic `jepsen`."""
    from harness.errors import UsageError
    from harness.jepsen import Assumptions, import_history

    if not os.path.lexists(history):
        raise UsageError(f"{history} does not exist.", "Name the history.edn of a test of Jepsen's.")
    waits = {"all": -1, "-1": -1, "1": 1, "0": 0}
    if acks not in waits:
        raise UsageError(f"--acks {acks!r} is none of all, 1 and 0.")
    assumptions = Assumptions(waits[acks], isolation.value, idempotence, unclean_election, retention)
    found = import_history(history, out, assumptions)
    tell(f"{found.operations} operations, {found.rows} rows; {found.ignored} operations of nemesis and admin left out")
    if not found.final_read:
        tell("There is no final read: records that no poll delivered will be called unseen, and the run inconclusive.")
    typer.echo(out)
    return ExitCode.PASS


@exports.command("jepsen")
def export_jepsen(
    run_directory: Annotated[Path, typer.Argument(metavar="RUN_DIR", exists=True, help="A run directory.")],
    out: Annotated[Path, typer.Option(metavar="HISTORY.edn", help="The file to write; an older one is replaced.")],
) -> int:
    """Write a run's client history as Jepsen's Kafka checker reads it."""
    from harness.history.run_directory import RunDirectory
    from harness.jepsen import export_history

    done = export_history(RunDirectory.open(run_directory), out)
    left = f"; {done.left_out} deliveries left out, of records that no client sent intact" if done.left_out else ""
    tell(f"{done.operations} operations{left}")
    typer.echo(out)
    return ExitCode.PASS
