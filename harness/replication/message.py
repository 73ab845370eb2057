"""How the core's events and effects are declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

Declared = TypeVar("Declared")


@dataclass_transform(frozen_default=True)
def message(cls: type[Declared]) -> type[Declared]:
    """A frozen dataclass with slots; that nobody writes to it is mypy's business.

    At run time freezing would make it eight times as expensive to create, and a simulator creates little else.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
