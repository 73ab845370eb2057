"""The pytest plugin, as a user's own tests have it: each test here runs pytest in a directory of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.checker import Outcome, from_json
from harness.history.run_directory import RunDirectory

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[3]

BROKEN = """
import pytest

MARK = pytest.mark.seawall(
    topics={"payments": 1},
    replication={"bugs": "ack_on_append"},
    settings={"broker.session.timeout.ms": 15000, "replica.lag.time.max.ms": 30000},
)


@MARK
def test_acknowledged(seawall_cluster, history, assert_no_acked_loss):
    producer = history.producer()
    producer.list_topics("payments", timeout=60)  # later it might ask a broker that is paused, and wait
    followers = [node for node in range(3) if node != seawall_cluster.leader("payments")]
    with seawall_cluster.fault("pause", node=followers[0]), seawall_cluster.fault("pause", node=followers[1]):
        for value in ("perhaps in the followers' parked fetch", "in the leader's log alone"):
            producer.produce("payments", value)
            producer.flush()
        with seawall_cluster.fault("power_loss", node="leader"):
            pass
    assert_no_acked_loss(history)


@pytest.mark.seawall(topics={"payments": 1})
def test_of_something_else(history):
    producer = history.producer()
    producer.produce("payments", "first")
    producer.flush()
    raise ValueError("no payment")


@pytest.mark.seawall(brokers=0)
def test_that_asks_for_too_little(seawall_cluster):
    pass
"""


def run(pytester: pytest.Pytester, text: str, *, path: str = "") -> pytest.RunResult:
    pytester.makepyfile(text)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", os.pathsep.join([*([path] if path else []), str(ROOT)]))
        return pytester.runpytest_subprocess("-p", "seawall_pytest", "-p", "no:xdist")


def test_the_example_in_the_documentation_passes_and_leaves_nothing(pytester: pytest.Pytester) -> None:
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "pytest.md").read_text(), re.DOTALL)
    run(pytester, example).assert_outcomes(passed=1)
    assert not list(pytester.path.glob("runs/pytest/*/*"))


def test_a_loss_and_any_other_failure_leave_a_report_and_the_verdict(pytester: pytest.Pytester) -> None:
    result = run(pytester, BROKEN)
    result.assert_outcomes(failed=2, errors=1)
    said = result.stdout.str()
    # The first record is lost, too, where the followers were paused between two fetches.
    assert re.search("AssertionError: VIOLATION: (1 acknowledged write was|2 acknowledged writes were) lost", said)
    assert re.search("VIOLATION (lost-write at payments-0 offset 1|2 lost-write: payments-0 at offsets 0 to 1)", said)
    assert "PASS: no acknowledged write was lost." in said
    assert "seawall: @pytest.mark.seawall.brokers: 0 is refused" in said
    reports = sorted({Path(path) for path in re.findall(r"report: (\S+)$", said, re.MULTILINE)})
    assert [report.exists() for report in reports] == [True, True]
    outcomes = [from_json(RunDirectory(report.parent).read_verdict() or {}).outcome for report in reports]
    assert sorted(outcomes) == [Outcome.PASS, Outcome.VIOLATION]


def test_a_foreign_package_fails_the_tests_that_use_a_fixture_in_one_sentence(pytester: pytest.Pytester) -> None:
    foreign = pytester.mkdir("foreign")
    (foreign / "reports").mkdir()
    (foreign / "reports" / "__init__.py").touch()
    text = "def test_ours(history): pass\n\ndef test_theirs():\n    import reports\n"
    result = run(pytester, text, path=str(foreign))
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [f"seawall: package 'reports' is imported from {foreign}/reports, but seawall's own is *"]
    )


def test_the_plugin_imports_nothing_of_ours_before_a_fixture_is_used() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import seawall_pytest;"
        "print(sorted({name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "['seawall_pytest']\n"
