"""What the built-in nodes and seawall's clients always say, they have said.

Where a leader, or the controller, names no ISR, and polls no leader epoch, whole promises have nothing to judge.
Samples of real Kafka, and imported histories, may lack them; a leader of the built-in cluster writes an ISR in every
row, and its consumers are given a leader epoch with each record. Without them the run is ``INVALID``.

That only some of the polls name no epoch is not noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from checkers.conclusion import RunFacts
from checkers.nodes_are_accounted import silent_isrs


def nulls(run: RunFacts, numbers: Mapping[str, int]) -> Iterator[str]:
    """One sentence for each column that lacks what it always has; of a run that a target made."""
    if run.sampled:
        return
    if places := silent_isrs(run.facts.stretches):
        yield f"Leaders, or the controller, have rows about {', '.join(map(str, places))} that name no ISR."
    if numbers["final_records"] + numbers["polled_records"] and not run.facts.read_epochs:
        yield "No poll names the leader epoch of a record that it delivered."
