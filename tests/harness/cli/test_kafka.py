"""``seawall kafka``; nothing is fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.targets.kafka.releases import TRIED
from tests.harness.cli.calling import Seawall


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With one release."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "seawall" / "kafka"
    (path / "3.8.0").mkdir(parents=True)
    return path


def test_the_releases_that_run_and_those_in_the_cache_are_listed(seawall: Seawall) -> None:
    said = seawall("kafka", "list")
    assert said.code == 0
    assert all(f" {version} " in said.out for version in (*TRIED, "3.8.0"))


def test_what_is_in_the_cache_is_not_fetched_again(seawall: Seawall, cache: Path) -> None:
    said = seawall("kafka", "fetch", "3.8.0")
    assert (said.code, said.out.strip()) == (0, str(cache / "3.8.0"))


def test_a_release_that_cannot_be_had_ends_with_the_code_of_whose_fault_it_is(
    seawall: Seawall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("SEAWALL_KAFKA_ARCHIVE", "http://127.0.0.1:1")
    missing, too_old = seawall("kafka", "fetch", "3.9.1"), seawall("kafka", "fetch", "3.9.1", "0.9.0.1")
    assert missing.code == 4
    assert "there is no Maven (mvn) on the PATH" in missing.err
    assert too_old.code == 64
    assert "0.9.0.1 is older than any that can be run" in too_old.err


def test_a_run_on_a_release_that_was_not_fetched_says_how_to_fetch_it(seawall: Seawall) -> None:
    said = seawall("run", "random-chaos", "--target", "process:3.9.1")
    assert said.code == 4
    assert "seawall kafka fetch 3.9.1" in said.err
