"""``seawall kafka fetch | list``: the releases of Apache Kafka on this machine."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from harness.cli.terminal import progress, stdout

app = typer.Typer(help="The releases of Apache Kafka on this machine.", no_args_is_help=False)


@app.command()
def fetch(
    versions: Annotated[list[str], typer.Argument(metavar="VERSION...", help="Releases, as Kafka spells them: 3.9.1.")],
) -> None:
    """Fetch releases into the cache, from Apache's archive or with Maven and print where they are; those there stay."""
    from harness.targets.kafka import fetching
    from harness.targets.kafka.releases import release

    say = progress()
    for version in [release(one).version for one in versions]:
        if version not in fetching.fetched():
            say(f"fetching Kafka {version}")
        stdout().print(fetching.fetch(version).home, highlight=False, soft_wrap=True)


@app.command("list")
def list_() -> None:
    """List the releases that are known to run, and those in the cache."""
    from harness.targets.kafka import fetching
    from harness.targets.kafka.releases import TRIED, numbers, release

    fetched = fetching.fetched()
    table = Table("release", "protocol generation", "state kept by", "message format", "in the cache", "tried")
    for version in sorted({*TRIED, *fetched}, key=numbers):
        one = release(version)
        known = ("yes" if version in where else "no" for where in (fetched, TRIED))
        table.add_row(version, one.generation, one.metadata.value, f"v{one.magic}", *known)
    stdout().print(table)
