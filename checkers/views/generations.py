"""What each generation of the protocol promises: by kind of anomaly, the first generation that rules it out.

In an older generation, which is known to do it, it is ``DOCUMENTED``. A run that names no generation, as an imported
history, is judged by the newest.
"""

from __future__ import annotations

from harness.anomaly import AnomalyKind
from harness.replication.knobs import GENERATIONS

_ORDER = tuple(GENERATIONS)


def since(generation: str, first: str) -> bool:
    """Whether ``generation`` is ``first`` or a later one; one that is not known counts as the newest."""
    return generation not in _ORDER or _ORDER.index(generation) >= _ORDER.index(first)


def is_promised(kind: AnomalyKind, generation: str) -> bool:
    """Whether ``generation`` rules out anomalies of that kind."""
    return kind.since is None or since(generation, kind.since.generation)
