"""What the parts of the evidence about one run have in common: its id, and findings about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.findings import Finding
from harness.model import TopicPartition


@dataclass(frozen=True)
class AboutRun:
    """A part of the evidence about the run of this id."""

    run: str

    def finding(self, kind: str, place: TopicPartition, **known: Any) -> Finding:
        """A finding about this run."""
        return Finding(self.run, kind, place.topic, place.partition, **known)
