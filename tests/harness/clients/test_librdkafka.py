"""Where librdkafka's chatter goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.clients.librdkafka import close_log, file_log


def test_a_log_takes_lines(tmp_path: Path) -> None:
    log = file_log(tmp_path / "clients.log", "a-log")
    log.info("a line")
    close_log(log)
    assert (tmp_path / "clients.log").read_text().endswith(" a line\n")


@pytest.mark.parametrize("path", ["/dev/full", "/dev/null/clients.log"])
def test_a_log_that_cannot_be_written_says_nothing(path: str, capfd: pytest.CaptureFixture[str]) -> None:
    log = file_log(Path(path), "a-full-log")
    for _ in range(1000):
        log.info("a line that is longer than most, so that a buffer would overflow at last")
    close_log(log)
    assert capfd.readouterr() == ("", "")


def test_a_line_that_cannot_be_formatted_is_a_bug(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = file_log(tmp_path / "clients.log", "a-broken-line")
    log.info("%d", "no number")
    close_log(log)
    assert "--- Logging error ---" in capfd.readouterr().err
