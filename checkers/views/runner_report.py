"""What the runner saw of the cluster of one run, as in ``run.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class RunnerReport(NamedTuple):
    """What the runner saw.

    Attributes:
        unrest: of a healed cluster that did not recover; empty: it did.
        endings: how lives of nodes ended that had not been ordered to.
        unknown_topics: the topics of the run that the cluster did not know in the end.
    """

    unrest: Mapping[str, Any]
    endings: Sequence[Mapping[str, Any]]
    unknown_topics: Sequence[Mapping[str, Any]]
