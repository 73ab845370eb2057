"""The pytest plugin: a cluster that breaks on purpose, and the proof that a test's own clients lost nothing.

pytest imports it always, so it imports nothing but pytest until a test uses a fixture: packages of other distributions
that have the names of seawall's then fail those tests alone. See docs/pytest.md.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.in_pytest.cluster import SeawallCluster
    from harness.in_pytest.history import ClientHistory

_CLUSTER = pytest.StashKey["SeawallCluster"]()
_FAILED = pytest.StashKey[bool]()

_MARKER = (
    "seawall(generation=None, release=None, brokers=3, settings={}, topics={}, replication={}, seed=None): "
    "the cluster of the fixture seawall_cluster"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    options = parser.getgroup("seawall")
    options.addoption("--seawall-runs", metavar="DIR", default="runs/pytest", help="where run directories go")
    options.addoption("--seawall-keep", choices=("failing", "all"), default="failing", help="the runs to keep")
    options.addoption("--seawall-engine", choices=("reference", "spark"), default="reference", help="who decides")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Leave a report of the run of every test that failed."""
    report = yield
    cluster = item.stash.get(_CLUSTER, None)
    if cluster is not None and report.when == "call" and report.failed:
        item.stash[_FAILED] = True
        from harness.in_pytest.cluster import story_of  # noqa: PLC0415 - see above

        report.sections.append(("seawall", story_of(cluster)))
    return report


@pytest.fixture
def seawall_cluster(request: pytest.FixtureRequest) -> Iterator[SeawallCluster]:
    """A cluster of its own for the test, as the marker ``seawall`` describes it; see docs/pytest.md."""
    cluster = _started(request)
    request.node.stash[_CLUSTER] = cluster
    try:
        yield cluster
    finally:
        cluster.close()
        if not request.node.stash.get(_FAILED, False) and request.config.getoption("--seawall-keep") == "failing":
            shutil.rmtree(cluster.directory.path, ignore_errors=True)


@pytest.fixture
def history(seawall_cluster: SeawallCluster) -> ClientHistory:
    """What the test's clients do: its ``producer()`` and ``consumer()`` record by themselves."""
    return seawall_cluster.history


@pytest.fixture
def assert_no_acked_loss(seawall_cluster: SeawallCluster) -> Callable[[ClientHistory], None]:
    """``assert_no_acked_loss(history)``: heals, reads everything, stops the cluster, and checks every promise."""

    def assertion(history: ClientHistory) -> None:
        __tracebackhide__ = True
        from harness.in_pytest import cluster  # noqa: PLC0415 - see above

        assert history is seawall_cluster.history, "the history is that of another cluster"
        cluster.assert_no_acked_loss(seawall_cluster)

    return assertion


def _started(request: pytest.FixtureRequest) -> SeawallCluster:
    """The cluster; what cannot be started fails the test with a sentence."""
    from seawall_origin import strangers  # noqa: PLC0415 - see above

    if found := strangers():
        pytest.fail(f"seawall: {' '.join(found)}", pytrace=False)
    from harness.errors import SeawallError  # noqa: PLC0415
    from harness.in_pytest.cluster import SeawallCluster  # noqa: PLC0415
    from harness.in_pytest.wanted import wanted  # noqa: PLC0415

    try:
        return SeawallCluster(
            wanted(_arguments(request)),
            request.node.nodeid,
            request.config.rootpath / Path(request.config.getoption("--seawall-runs")),
            request.config.getoption("--seawall-engine"),
        )
    except SeawallError as problem:
        pytest.fail(f"seawall: {problem}", pytrace=False)


def _arguments(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Of every marker, the nearest last."""
    arguments: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("seawall"))):
        if marker.args:
            sentence = f"seawall: @pytest.mark.seawall takes names, as in brokers=3, and not {marker.args[0]!r}."
            pytest.fail(sentence, pytrace=False)
        arguments |= marker.kwargs
    return arguments
