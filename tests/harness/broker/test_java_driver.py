"""The process of Kafka's Java clients: how it ends, and what it answers."""

from __future__ import annotations

import logging

import psutil
import pytest

from harness.client_properties import Access
from harness.clients.java.driver import Driver
from harness.clients.java.library import Java
from harness.errors import EnvironmentFault
from tests.harness.broker.client_libraries import LOG, fails, java_classpath
from tests.harness.broker.cluster import Cluster


def test_java_processes_end_with_that_of_the_library_that_has_made_them() -> None:
    whole = Java(Access("127.0.0.1:1"), java_classpath(), LOG, fails)
    pids = [whole._driver.pid, whole.apart()._driver.pid]
    assert all(map(psutil.pid_exists, pids))
    whole.close()
    assert not any(map(psutil.pid_exists, pids))


def test_a_java_process_that_ends_by_itself_ends_the_run(cluster: Cluster) -> None:
    failures: list[BaseException] = []
    driver = Driver(java_classpath(), LOG, failures.append)
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "g"}
    client = driver.client("consumer", settings)
    psutil.Process(driver.pid).kill()
    assert driver.ask(client, "poll", timeout_ms=0)["error"] == "_DESTROY"
    driver.close()
    driver.close()
    assert not psutil.pid_exists(driver.pid)
    [failure] = failures
    assert f"process {driver.pid}, has ended by itself" in str(failure)


def test_settings_that_kafkas_client_refuses_are_an_error_and_so_is_a_client_that_is_closed(cluster: Cluster) -> None:
    driver = Driver(java_classpath(), LOG, fails)
    with pytest.raises(EnvironmentFault, match=r"could not be made: ConfigException: .*bootstrap"):
        driver.client("consumer", {})
    client = driver.client("consumer", {"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
    assert "error" not in driver.ask(client, "close", timeout_ms=0)
    assert driver.ask(client, "poll", timeout_ms=0)["error"] == "IllegalStateException"
    driver.close()


def test_what_kafkas_client_logs_is_an_answer(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dorg.apache.logging.log4j.level=INFO")
    driver = Driver(java_classpath(), LOG, fails)
    with caplog.at_level(logging.INFO, LOG.name):
        driver.client("consumer", {"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
        driver.close()
    assert "ConsumerConfig values" in caplog.text


def test_a_java_process_that_prints_what_is_no_answer_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "--show-version")
    failures: list[BaseException] = []
    driver = Driver(java_classpath(), LOG, failures.append)
    assert driver.ask(driver.client("consumer", {}), "poll", timeout_ms=0)["error"] == "_DESTROY"
    driver.close()
    [failure] = failures
    assert "which is no answer" in str(failure)


def test_the_java_process_ends_within_a_line_of_its_input(cluster: Cluster) -> None:
    driver = Driver(java_classpath(), LOG, lambda failure: None)
    driver.client("consumer", {"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
    assert driver._process.stdin is not None
    driver._process.stdin.write('{"do": "poll", "cl')
    driver._process.stdin.close()
    assert driver._process.wait(30) == 0
    driver.close()
