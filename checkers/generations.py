"""What each generation of the protocol promises: by kind of anomaly, the first generation that rules it out.

An older generation is known to do it, so there it is ``DOCUMENTED``. A run that names no generation, as an
imported history, is held to the newest.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from harness.replication.knobs import GENERATIONS

_ORDER = tuple(GENERATIONS)

PROMISED_SINCE: Mapping[str, str] = MappingProxyType(
    {
        "committed-cut": "2.0.1",
        "epoch-cache-mismatch": "2.0.1",
        "epoch-disorder": "2.0.1",
        "incomplete-candidate": "2.1",
        "incomplete-leader": "2.1",
        "lineage-break": "2.1",
        "unjustified-advance": "2.1",
        "unfenced-read": "2.1",
        "unjustified-join": "2.1",
        "advance-below-min-isr": "3.7",
    }
)
"""The kinds that not every generation rules out."""

WHY_NOT: Mapping[str, str] = MappingProxyType(
    {
        "committed-cut": "followers cut by their own watermark, or look an epoch up only once (KIP-101, KIP-279)",
        "epoch-cache-mismatch": "followers keep records that their leader never had, in any order (KIP-279)",
        "epoch-disorder": "followers do not look epochs up to the end (KIP-279)",
        "incomplete-candidate": "followers cut what is committed, and are counted while they live in another epoch",
        "incomplete-leader": "followers get records of epochs that they have not heard of (KIP-320)",
        "lineage-break": "fetches are not fenced by epoch (KIP-320), nor epochs always looked up to the end",
        "unjustified-advance": "a leader counts the fetches of followers that live in another epoch (KIP-320)",
        "unfenced-read": "fetches are not fenced by epoch (KIP-320)",
        "unjustified-join": "a leader counts the fetches of followers that live in another epoch (KIP-320)",
        "advance-below-min-isr": "the watermark does not wait for min.insync.replicas (KAFKA-15583)",
    }
)
"""Why older generations do it."""


def since(generation: str, first: str) -> bool:
    """Whether ``generation`` is ``first`` or a later one; one that is not known counts as the newest."""
    return generation not in _ORDER or _ORDER.index(generation) >= _ORDER.index(first)


def is_promised(kind: str, generation: str) -> bool:
    """Whether ``generation`` rules out anomalies of that kind."""
    return since(generation, PROMISED_SINCE.get(kind, _ORDER[0]))
