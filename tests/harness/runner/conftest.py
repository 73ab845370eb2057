"""Every test of the runner keeps its journals to itself."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may find, or leave, journals of anybody else."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "runtime"))
