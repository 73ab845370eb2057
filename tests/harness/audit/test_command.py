"""``seawall audit`` as a command, on built-in clusters in real time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness.checker import EvidenceTier
from harness.cli.schema import Document
from harness.client_properties import Access
from harness.errors import ExitCode
from harness.targets.bootstrap.administration import Administration
from tests.harness.cli.calling import Seawall
from tests.harness.cli.conftest import seawall as seawall  # noqa: PLC0414 - a fixture
from tests.harness.schemas.published import closed, complaints
from tests.harness.targets.bootstrap.running_builtin import running, topics

ENTRY = "import sys; from harness.entry import main; sys.exit(main())"
NOWHERE = "bootstrap:127.0.0.1:1"
QUICK = ("--rate", "20", "--window", "4s", "--keep", "1m")


@contextmanager
def begun(*words: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-P", "-c", ENTRY, "audit", *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def windows(directory: Path) -> list[dict[str, Any]]:
    path = directory / "audit.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def await_windows(process: subprocess.Popen[str], directory: Path, number: int) -> None:
    while len(windows(directory)) < number:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--target", NOWHERE, "--rate", "500"], "never sends more than 200"),
        (["--target", NOWHERE, "--size", "30000"], "never sends more than 200,000"),
        (["--target", "builtin"], "needs a cluster that runs"),
        (["--target", NOWHERE, "--for", "a while"], "is no duration"),
        (["--target", NOWHERE, "--event", "it broke"], "is no time and what happened"),
        ([], "holds no audit"),
        (["--end"], "holds no audit"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_a_sentence(
    tmp_path: Path, seawall: Seawall, words: Sequence[str], complaint: str
) -> None:
    said = seawall("audit", "--out", tmp_path / "audit", *words)
    assert said.code == ExitCode.USAGE
    assert complaint in said.err


def test_a_sound_cluster_passes_and_keeps_nothing_of_the_audit(tmp_path: Path, seawall: Seawall) -> None:
    out, metrics = tmp_path / "audit", tmp_path / "seawall.prom"
    with running(tmp_path / "cluster") as cluster:
        target = f"bootstrap:{cluster.bootstrap()}"
        refused = seawall("audit", "--target", target, "--out", out, *QUICK, "--for", "4s", "--replication", 4)
        assert "replication" in refused.err.lower()
        assert refused.code == ExitCode.ENVIRONMENT
        (out / "events").write_bytes(b"St\xf6rung\n")
        said = seawall("audit", "--target", target, "--out", out, *QUICK, "--for", "4s", "--metrics", metrics)
        assert topics(cluster.bootstrap()) == set()
    assert said.code == ExitCode.PASS, said.err
    found = windows(out)
    assert [one["outcome"] for one in found] == ["pass"]
    assert all(one["acknowledged"] == one["sent"] > 0 == one["lost"] for one in found)
    assert all(one["evidence"] == EvidenceTier.CLIENTS and "hw-regression" in one["not_asked"] for one in found)
    assert [complaints(closed(Document.AUDIT), one) for one in found] == [[]]
    assert "0 of" in (page := (out / "report.html").read_text())
    assert "is no time and what happened" in page
    assert said.err.count(r"Passed over in the events that operators tell: event 'St\\xf6rung' is no time") == 1
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.read_text())
        for sample in family.samples
    }
    sent = sum(one["sent"] for one in found)
    assert samples["seawall_audit_sends_total", "acknowledged"] == sent
    assert samples["seawall_audit_ack_seconds_count",] == sent
    assert samples["seawall_audit_lost_records_total", "0"] == 0
    assert samples["seawall_audit_windows_total", "pass"] == 1
    assert samples["seawall_audit_last_window_end_timestamp_seconds",] <= time.time()
    assert seawall("audit", "--out", out).code == ExitCode.USAGE  # it has ended


def test_a_window_that_misses_an_objective_counts_as_a_violation(tmp_path: Path, seawall: Seawall) -> None:
    out, metrics = tmp_path / "audit", tmp_path / "seawall.prom"
    with running(tmp_path / "cluster") as cluster:
        words = (
            "--target",
            f"bootstrap:{cluster.bootstrap()}",
            "--out",
            out,
            *QUICK,
            "--for",
            "4s",
            "--metrics",
            metrics,
        )
        said = seawall("audit", *words, "--max-ack-p99", "0.00001s", "--min-availability", "10")
    assert said.code == ExitCode.VIOLATION
    [found] = windows(out)
    assert found["outcome"] == "pass"
    assert [sentence.partition(" of ")[2] for sentence in found["missed"]] == [
        f"{found['sent']} sends were acknowledged within 1e-05 s; --max-ack-p99 demands 99%."
    ]
    assert "PASS" in said.err
    assert found["missed"][0] in said.err
    assert "seawall_audit_missed_objectives_total 1.0" in metrics.read_text()
    page = (out / "report.html").read_text()
    assert "0 with a violation, 0 undecided; 1 missed an objective" in page
    assert "every partition available for 0.1" in page
    assert "pass, objective missed" in page


def test_an_audit_goes_on_and_ends_from_another_working_directory(
    tmp_path: Path, seawall: Seawall, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, client = tmp_path / "audit", tmp_path / "client.properties"
    client.write_text("security.protocol=PLAINTEXT\n")
    with running(tmp_path / "cluster") as cluster:
        target = f"bootstrap:{cluster.bootstrap()}#client="
        monkeypatch.chdir(tmp_path)
        with begun("--target", f"{target}client.properties", "--out", out, *QUICK) as process:
            await_windows(process, out, 1)
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(120) == ExitCode.PASS
        monkeypatch.chdir("/")
        said = seawall("audit", "--target", f"{target}{client}", "--out", out, *QUICK, "--for", "4s")
        assert topics(cluster.bootstrap()) == set()
    assert said.code == ExitCode.PASS, said.err


@pytest.mark.nightly("three lives of one audit, and a window must pass in each")
def test_an_audit_that_was_killed_goes_on_and_judges_what_was_acknowledged_before(tmp_path: Path) -> None:
    out = tmp_path / "audit"
    with running(tmp_path / "cluster") as cluster:
        with begun("--target", f"bootstrap:{cluster.bootstrap()}", "--out", out, *QUICK) as first:
            await_windows(first, out, 1)
            time.sleep(2)
            os.kill(first.pid, signal.SIGKILL)
        [topic] = topics(cluster.bootstrap())
        with begun("--out", out, *QUICK) as second:
            await_windows(second, out, 3)
            os.kill(second.pid, signal.SIGTERM)
            assert second.wait(120) == ExitCode.PASS
        assert topics(cluster.bootstrap()) == {topic}
        with begun("--out", out, "--end") as third:
            assert third.wait(60) == ExitCode.PASS
        assert topics(cluster.bootstrap()) == set()
    found = windows(out)
    killed = [one for one in found if one["interrupted"]]
    assert {one["outcome"] for one in found} == {"pass"}
    assert sum(one["acknowledged"] for one in killed) > 0
    [blind_s] = [one["blind_s"] for one in found if one["blind_s"]]
    assert blind_s > 0


@pytest.mark.nightly("by day a broker forgets in virtual time")
def test_a_broker_that_comes_back_empty_is_found_in_the_window_in_which_it_does(tmp_path: Path) -> None:
    out = tmp_path / "audit"
    settings: dict[str, Any] = {"min.insync.replicas": 1}
    with running(tmp_path / "cluster", **settings) as cluster:
        words = ("--target", f"bootstrap:{cluster.bootstrap()}", "--out", out, *QUICK, "--replication", 1)
        with begun(*words) as process:
            await_windows(process, out, 1)
            before = len(windows(out))
            cluster.kill("1")
            cluster.wipe_disk("1")
            cluster.restart("1")
            await_windows(process, out, before + 3)
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(120) == ExitCode.VIOLATION
    found = windows(out)
    lossy = [one for one in found if one["lost"]]
    assert lossy
    assert all("lost-write" in one["anomalies"] for one in lossy)
    assert {one["outcome"] for one in found if one["window"] <= before} == {"pass"}
    assert {loss["partition"] for one in lossy for loss in one["losses"]} == {lossy[0]["losses"][0]["partition"]}


@pytest.mark.nightly("no broker for longer than a window")
def test_an_audit_outlives_an_outage_of_the_whole_cluster(tmp_path: Path) -> None:
    out = tmp_path / "audit"
    with running(tmp_path / "cluster") as cluster:
        patient = (*QUICK[:-1], "10m")  # what an outage delays is not given up for its age
        words = ("--target", f"bootstrap:{cluster.bootstrap()}", "--out", out, *patient)
        with begun(*words) as process:
            await_windows(process, out, 1)
            before = len(windows(out))
            for number in range(3):
                cluster.kill(str(number))
            await_windows(process, out, before + 2)
            for number in range(3):
                cluster.restart(str(number))
            await_windows(process, out, before + 5)
            os.kill(process.pid, signal.SIGTERM)
            process.wait(120)
    found = windows(out)
    assert sum(one["lost"] for one in found) == 0
    assert {one["outcome"] for one in found} == {"pass", "inconclusive"}
    assert found[-1]["outcome"] == "pass"
    assert min(part["availability"] for one in found for part in one["partitions"]) < 0.5


@pytest.mark.nightly("a topic must be missing for ten seconds")
def test_a_canary_topic_that_the_cluster_has_lost_is_a_violation_and_ends_the_audit(tmp_path: Path) -> None:
    out = tmp_path / "audit"
    with running(tmp_path / "cluster") as cluster:
        with begun("--target", f"bootstrap:{cluster.bootstrap()}", "--out", out, *QUICK) as process:
            await_windows(process, out, 1)
            Administration(Access(cluster.bootstrap())).delete(sorted(topics(cluster.bootstrap())))
            assert process.wait(200) == ExitCode.VIOLATION
        assert topics(cluster.bootstrap()) == set()
    last = windows(out)[-1]
    assert last["outcome"] == "violation"
    assert last["anomalies"] == {"lost-topic": 1}
