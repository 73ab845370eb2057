"""Settings that every test shares."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

# No deadline: two busy cores decide how long an example takes. In CI the examples are the same every time, so
# that a red build means a changed project; at a desk they are new each time, which is how bugs are found.
settings.register_profile("seawall", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("seawall")

# A shell that starts a job in the background lets it ignore SIGINT, and everything that the job starts: tests that
# send it would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# `timeout` ends what takes too long by SIGTERM, which ends Python without the end of any fixture: nodes, containers
# and rules of packet filters would stay. A second one does not end the fixtures.
def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.default_int_handler(number, frame)


signal.signal(signal.SIGTERM, _end)

_TESTS = Path(__file__).parent
_SPARK = "tests/spark_analysis"
_FIRST = f"{_TESTS.parent / _SPARK}/"
_SLOW = tuple(
    f"{_TESTS / place}/"
    for place in ("harness/targets", "workloads", "attribution", "harness/runner", "harness/in_pytest")
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``pytest --rewrite`` accepts what stories and generated documents say now; review the diff."""
    parser.addoption("--rewrite", action="store_true", help="write the present output into stories and documents")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Require a reason for what is left to the night, and begin with the files that take longest.

    One that comes late leaves the other worker idle. Spark's is one job that computes for minutes, and begins at once:
    what runs beside it waits for nodes much of its time.
    """
    for item in items:
        if not all(marker.args for marker in item.iter_markers("nightly")):
            raise pytest.UsageError(f'{item.nodeid} is marked nightly without a reason: @pytest.mark.nightly("why").')
    items.sort(key=lambda item: (not str(item.path).startswith(_FIRST), not str(item.path).startswith(_SLOW)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search for garbage less often: by Python's own settings that takes a second and a half of collecting.

    Of the tests after it, it takes a second in fifteen.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.set_threshold(50_000, 20, 50)
        gc.enable()


class Files(LoadFileScheduling):  # type: ignore[misc]  # xdist is untyped
    """A worker at a time has each file, and one of them has all files of Spark: they share a JVM and its job."""

    def _split_scope(self, nodeid: str) -> str:
        return _SPARK if nodeid.startswith(f"{_SPARK}/") else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Files:
    """Every ``--dist`` is by file."""
    return Files(config, log)


@pytest.fixture
def without_nohup() -> Iterator[None]:
    """SIGHUP is heeded, also where ``nohup`` has started the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
