"""All made-up histories: those of every module here whose name ends with ``_cases``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tests.checkers.cases import CASES

__all__ = ["CASES"]

for module in sorted(Path(__file__).parent.glob("*_cases.py")):
    if module.stem != "all_cases":
        import_module(f"tests.checkers.{module.stem}")
