"""Writes the report of a checked run: one self-contained HTML file, and its findings as a table beside it."""

from __future__ import annotations

from pathlib import Path

from harness.history.run_directory import RunDirectory
from harness.scratch import unfinished
from reports.incidents import incidents
from reports.page import rendered, sources_of
from reports.records import FILE
from reports.records import write as write_findings
from reports.run import read

__all__ = ["write"]


def write(run_directory: Path) -> Path:
    """Write ``report.html`` into a checked run's directory, over an older one, and return its path.

    The page is self-contained: no script, no font, no image from elsewhere; it opens from a disk, offline.
    ``findings.csv`` beside it lists every finding, where there is any.

    Raises:
        EnvironmentFault: the page cannot be written.
        InvalidRun: the directory has no readable ``run.json`` or has not been checked. A missing or broken table
            is not an error: the page says that it was not looked at.
    """
    path = RunDirectory(run_directory).report_path
    run = read(run_directory)
    found, sources = incidents(run.verdict), sources_of(run)
    write_findings(run, found, sources.sends_of, run_directory / FILE)
    page = rendered(run, found, sources)
    with unfinished(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path
