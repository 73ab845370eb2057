"""The rows of built-in nodes and of seawall's clients fill the columns that they always fill.

If leaders or the controller name no ISR, or polls no leader epoch, whole promises have nothing to judge. Samples of
real Kafka, and imported histories, may lack them; a leader of the built-in cluster writes an ISR in every row, and its
consumers receive a leader epoch with each record. Without them the run is ``INVALID``.

Polls that name an epoch only now and then pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from checkers.completeness.nodes_are_accounted import silent_isrs
from checkers.views.states import States
from harness.facts import ClientFacts


def nulls(states: States, client_facts: ClientFacts, numbers: Mapping[str, int]) -> Iterator[str]:
    """One sentence for each column of a target's run that is empty and must not be."""
    if states.sampled:
        return
    if places := silent_isrs(states.intervals):
        yield f"Leaders, or the controller, have rows about {', '.join(map(str, places))} that name no ISR."
    if numbers["final_records"] + numbers["polled_records"] and not client_facts.read_epochs:
        yield "No poll names the leader epoch of a record that it delivered."
