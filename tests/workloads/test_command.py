"""A user's program: what is refused before it starts, and programs that keep and break what they promise."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

import workloads
from checkers import check
from harness import runner, scenario
from harness.checker import Outcome, RunVerdict, Verdict
from harness.errors import UsageError
from harness.history.run_directory import RunDirectory
from harness.payload import Carried
from harness.workload import Circumstances, Features

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
HARNESS = ROOT / "tests/harness/runner/harness_to_be_ended.py"

SCENARIO: dict[str, Any] = {
    "id": "my-program",
    "title": "A leader dies while a program works",
    "source": "a test",
    "topics": [{"name": "orders", "partitions": 2, "replication_factor": 3}],
    "cluster": {"settings": {"min.insync.replicas": 2}},
    "schedule": [
        {"wait_s": 1.5},
        {"inject": {"fault": "kill", "node": "leader", "topic": "orders", "partition": 0, "as": "gone"}},
        {"wait_s": 1.5},
        {"heal": "gone"},
        {"wait_s": 1},
    ],
}

SOME = 5
"""Outputs that even a busy machine brings about in these runs."""

LATE = pytest.mark.nightly("a whole run on real brokers; by day another way to put output out, and to break a promise")


def planned(target: str = "builtin", change: Mapping[str, Any] | None = None, **parameters: Any) -> runner.Plan:
    """The plan of a run with that program."""
    workload = {"name": "command", "rate": 60, "producers": 2, "quiet_s": 0.5, **parameters}
    text = yaml.safe_dump({**SCENARIO, **(change or {}), "workload": workload})
    return runner.plan(scenario.parse(text), target, seed=1)


def ran(tmp_path: Path, *argv: str, **parameters: Any) -> tuple[RunVerdict, RunDirectory]:
    """A run with a program of Python's, and the verdict on it; nothing of the program is left."""
    command = [sys.executable, str(PROGRAMS / argv[0]), *argv[1:]]
    env = {"CRASHED": str(tmp_path / "crashed")}
    directory = runner.run(planned(argv=command, env=env, **parameters), tmp_path / "runs")
    left = [one.pid for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == command]
    assert left == []
    [verdict] = check([directory.path], engine="reference")
    return verdict, directory


def broken(verdict: RunVerdict) -> set[str]:
    return {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION}


def test_a_program_that_keeps_its_promise_passes_while_it_and_a_broker_are_killed(tmp_path: Path) -> None:
    verdict, directory = ran(tmp_path, "processor.py", order="per-key", kill_every_s=1, copies=2)
    assert (verdict.outcome, verdict.reasons) == (Outcome.PASS, [])
    assert verdict.counts["outputs"] > SOME
    program = directory.manifest().program
    assert program["started"] == program["killed"] + program["exited"] + 2 > 2
    logs = {row["topic"] for row in directory.read_table("replica_logs")}
    assert {"orders", "output"} <= logs
    assert (directory.path / "program" / "copy-1.err").exists()


def test_a_program_that_commits_in_transactions_processes_everything_exactly_once(tmp_path: Path) -> None:
    verdict, _ = ran(tmp_path, "transactional.py", promise="exactly-once", copies=2, kill_every_s=2.0)
    assert (verdict.outcome, verdict.reasons) == (Outcome.PASS, [])
    assert verdict.counts["outputs"] > SOME


@pytest.mark.parametrize(
    ("argv", "parameters", "kinds"),
    [
        pytest.param(["commits_first"], {}, {"unprocessed"}, marks=LATE),
        (["commits_late"], {"promise": "exactly-once"}, {"processed-twice"}),
        pytest.param(["threads"], {"order": "per-key"}, {"processed-out-of-order"}, marks=LATE),
        pytest.param(["makes_up"], {}, {"made-up-output"}, marks=LATE),
        pytest.param(["dead_letters"], {"done": "quiet", "identity": "/processed"}, {"unprocessed"}, marks=LATE),
        pytest.param(["commits_first"], {"promise": "at-most-once"}, set(), marks=LATE),
        pytest.param(["commits_late"], {"promise": "at-least-once"}, set(), marks=LATE),
    ],
    ids=lambda one: one[0] if isinstance(one, list) else "",
)
def test_what_a_program_breaks_is_detected(
    tmp_path: Path, argv: list[str], parameters: dict[str, Any], kinds: set[str]
) -> None:
    verdict, _ = ran(tmp_path, "broken.py", *argv, **parameters)
    assert broken(verdict) == kinds
    assert verdict.outcome is (Outcome.VIOLATION if kinds else Outcome.PASS)


@pytest.mark.parametrize(
    ("how", "output"),
    [
        ("posts", "http"),
        pytest.param("prints", "stdout", marks=LATE),
        pytest.param("writes", "file", marks=LATE),
    ],
)
def test_a_consumer_s_output_may_be_outside_of_the_cluster(tmp_path: Path, how: str, output: str) -> None:
    verdict, directory = ran(tmp_path, "sink.py", how, output=output, order="per-key", kill_every_s=2)
    assert (verdict.outcome, verdict.reasons) == (Outcome.PASS, [])
    assert verdict.counts["outputs"] > SOME
    assert {row["topic"] for row in directory.read_table("history") if row["f"] == "output"} == {None}


def test_a_program_that_cannot_work_makes_the_run_inconclusive_and_is_quoted(tmp_path: Path) -> None:
    verdict, directory = ran(tmp_path, "broken.py", "no_such_way", drain_s=1, restart_s=0.5)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert any("put out nothing" in reason and "KeyError: 'no_such_way'" in reason for reason in verdict.reasons)
    program = directory.manifest().program
    assert program["exited"] > 1
    assert set(program["statuses"]) == {"1"}


def processes_of(script: Path) -> list[int]:
    """The processes that run a script of Python's."""
    return [one.pid for one in psutil.process_iter(["cmdline"]) if str(script) in (one.info["cmdline"] or ())]


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("number", "status"), [pytest.param(signal.SIGTERM, 130, marks=LATE), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_nothing_of_a_program_is_left_whatever_ends_seawall(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    program, file = tmp_path / "stubborn.py", tmp_path / "scenario.yaml"
    program.write_text((PROGRAMS / "stubborn.py").read_text())
    workload = {"name": "command", "argv": [sys.executable, str(program)], "stop_s": 1}
    file.write_text(yaml.safe_dump({**SCENARIO, "schedule": [{"wait_s": 60}], "workload": workload}))
    with subprocess.Popen([sys.executable, str(HARNESS), str(file), str(tmp_path / "runs")], cwd=ROOT) as harness:
        try:
            until(lambda: len(processes_of(program)) == 2)
        finally:
            harness.send_signal(number)
    assert harness.returncode == status
    until(lambda: not processes_of(program))
    runner.heal_leftovers()


SENDS = {"schedule": [{"send": {"per_partition": 1}}]}
ORDERS_AND_DONE = {"topics": [{"name": "orders"}, {"name": "done"}]}


@pytest.mark.parametrize(
    ("target", "change", "parameters", "sentence"),
    [
        ("simulated", {}, {}, "runs a program in real time, and target 'simulated' has none"),
        ("builtin", {}, {"argv": ["no-such-program"]}, "there is no program 'no-such-program' that this"),
        ("builtin", {}, {"cwd": "/no/such/place"}, "there is no directory /no/such/place"),
        ("builtin", {}, {"argv": []}, "argv"),
        ("builtin", {}, {"identity": "id"}, "identity"),
        ("builtin", SENDS, {}, "the schedule sends records that no program knows"),
        ("builtin", ORDERS_AND_DONE, {"output_topic": "done"}, "which is a topic of its input"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused_in_a_sentence(
    target: str, change: Mapping[str, Any], parameters: Mapping[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError) as refused:
        planned(target, change, **{"argv": ["sh"], **parameters})
    assert sentence in refused.value.sentence


def test_a_cluster_that_stores_no_headers_is_refused() -> None:
    old = Circumstances("process:0.10.2.2", False, Features(Carried(headers=False), False, None), (), False)
    with pytest.raises(UsageError, match=r"'process:0\.10\.2\.2' stores none"):
        workloads.parse("command", {"argv": ["sh"]}).refuse(old)


def test_the_output_is_a_topic_like_the_input() -> None:
    wide = {"topics": [{"name": "a", "replication_factor": 2, "replicas": [0, 1]}, {"name": "b", "partitions": 4}]}
    made = planned(change=wide | {"schedule": [{"wait_s": 1}]}, argv=["sh"], output_topic="c")
    output = made.topics[-1]
    assert (output.name, output.partitions, output.assignment) == ("c", 4, ((0, 1),) * 4)
    assert {name.topic for name in made.partitions} == {"a", "b"}
    assert "c" not in {topic.name for topic in planned(argv=["sh"], output="stdout").topics}


@pytest.mark.parametrize(
    ("parameters", "permitted"),
    [
        ({}, {"repeat", "reorder"}),
        ({"promise": "at-most-once"}, {"skip", "reorder"}),
        ({"promise": "exactly-once", "order": "per-key"}, set()),
    ],
)
def test_what_is_promised_is_what_run_json_guarantees(parameters: dict[str, Any], permitted: set[str]) -> None:
    guaranteed = workloads.parse("command", {"argv": ["sh"], **parameters}).guarantees
    assert guaranteed == {f"program_may_{what}": what in permitted for what in ("skip", "repeat", "reorder")}


def test_a_program_is_no_part_of_several_workloads() -> None:
    with pytest.raises(UsageError, match="'command' cannot be a part"):
        workloads.parse("several_workloads", {"parts": [{"name": "command", "argv": ["sh"]}]})


def test_the_page_shows_the_program_that_passes_and_a_scenario_that_is_one() -> None:
    page = (ROOT / "docs/your-own-program.md").read_text()
    assert f"```python\n{(PROGRAMS / 'processor.py').read_text()}```" in page
    [shown] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    found = scenario.parse(shown)
    parsed = workloads.parse(found.workload.name, found.workload.parameters())
    assert parsed.guarantees == {"program_may_skip": False, "program_may_repeat": True, "program_may_reorder": False}
