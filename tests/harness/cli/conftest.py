"""The command line, called in this process."""

from __future__ import annotations

import pytest

from harness.cli import main
from tests.harness.cli.calling import Said, Seawall


@pytest.fixture
def seawall(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Seawall:
    monkeypatch.setattr("spark_analysis.warmup.warm_up", lambda rules: None)  # its thread would outlive the test

    def call(*words: object) -> Said:
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return call
