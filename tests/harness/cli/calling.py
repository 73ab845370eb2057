"""What a call of the command line said."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        return self.err.rstrip().splitlines()[-1]

    @property
    def complaint(self) -> str:
        return next(line for line in self.err.splitlines() if line.startswith("seawall: "))


Seawall = Callable[..., Said]
