"""``seawall museum``: adds recorded runs on real Kafka releases to the museum and writes its page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.terminal import stdout, tell
from harness.errors import SeawallError

_JSON = Path("reports/museum.json")
_DOCS = Path("docs/museum.md")


def museum(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN_DIR", help="Recorded runs, or directories of such, to add.")
    ] = None,
    json_: Annotated[Path, typer.Option("--json", metavar="FILE", help="Where the museum's runs are kept.")] = _JSON,
    docs: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the page.")] = _DOCS,
) -> None:
    """Add recorded runs on releases of Kafka to the museum, and write its page anew.

    Runs of other targets (compose:FILE and process:DIR, too) and runs that were interrupted are passed over. A run that
    is known already is judged anew.
    """
    from harness.museum.entry import entry, found, is_of_the_museum, read, write
    from harness.museum.page import page
    from harness.scenario import shipped

    entries = {one.run: one for one in read(json_)}
    known = set(entries)
    for path in found(runs or ()):
        try:
            if is_of_the_museum(path):
                one = entry(path)
                entries[one.run] = one
        except SeawallError as error:
            tell(f"left out: {path}: {error.sentence}")
    write(json_, entries.values())
    docs.write_text(page(list(entries.values()), shipped()), encoding="utf-8")
    stdout().print(f"{len(entries)} runs, {len(set(entries) - known)} of them new; see {docs}", highlight=False)
