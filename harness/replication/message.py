"""The class decorator of the core's events and effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

Declared = TypeVar("Declared")


@dataclass_transform(frozen_default=True)
def message(cls: type[Declared]) -> type[Declared]:
    """A dataclass with slots that mypy treats as frozen.

    Freezing at run time would make its creation eight times as expensive, and a simulator creates little else.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
