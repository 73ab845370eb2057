"""The command line, as its own tests call it."""

from __future__ import annotations

from tests.harness.cli.conftest import seawall

__all__ = ["seawall"]
