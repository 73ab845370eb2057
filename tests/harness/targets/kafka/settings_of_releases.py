"""Which settings brokers of each release know, as those releases say it themselves: what settings.csv is made from.

``python tests/harness/targets/kafka/settings_of_releases.py RELEASE ... > harness/targets/kafka/settings.csv`` fetches
the releases, which are to be the first of each line, and asks them one after the other. It needs a Java compiler.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import typer

from harness.targets.kafka import fetching
from harness.targets.kafka.fetching import Distribution
from harness.targets.kafka.releases import numbers
from tests.harness.short_java import short_java

_ASKING = Path(__file__).with_name("SettingNames.java")


def names(distribution: Distribution) -> frozenset[str]:
    """What the brokers of a release know."""
    words = [*short_java(distribution), str(_ASKING)]
    asked = subprocess.run(words, capture_output=True, text=True, check=True)
    return frozenset(asked.stdout.split())


def rows(known: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """The lines of the table, of what each of these releases knows: a setting, where it came, and where it was gone."""
    ordered = sorted(known, key=numbers)
    yield "name,since,until"
    for name in sorted(frozenset().union(*known.values())):
        having = [release for release in ordered if name in known[release]]
        later = ordered[ordered.index(having[-1]) + 1 :]
        assert having == ordered[ordered.index(having[0]) : ordered.index(having[-1]) + 1], f"{name} came back"
        yield f"{name},{having[0]},{later[0] if later else ''}"


if __name__ == "__main__":
    typer.echo("\n".join(rows({version: names(fetching.fetch(version)) for version in sys.argv[1:]})))
