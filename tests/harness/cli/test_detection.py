"""``seawall detection``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main


def test_measured_bugs_are_printed_and_written_and_others_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures, page = tmp_path / "power.json", tmp_path / "detection.md"
    files = ["--json", str(figures), "--docs", str(page), "--seeds", "3", "--jobs", "1"]
    assert main(["detection", "--bugs", "transaction_reordered,consumer_starves", *files]) == 0
    assert "transaction_reordered" in capsys.readouterr().out
    assert main(["detection", "--bugs", "zombie_producer", *files]) == 0
    assert list(json.loads(figures.read_text())["bugs"]) == [
        "consumer_starves",
        "transaction_reordered",
        "zombie_producer",
    ]
    written = page.read_text()
    made_up = written.partition("### Made-up histories")[2].partition("## What is missed")[0]
    bugs = [line for line in made_up.splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in bugs] == ["transaction_reordered", "zombie_producer", "consumer_starves"]
    missed = [line.split("`")[1] for line in bugs if "**missed**" in line]
    assert missed == ["consumer_starves"]
    assert f"{len(bugs) - len(missed)} of {len(bugs)} are found" in written


def test_an_unknown_bug_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detection", "--bugs", "zombie_producers"]) == 64
    assert "did you mean 'zombie_producer'?" in capsys.readouterr().err
