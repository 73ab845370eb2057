"""Plans for the Kafka of a compose file, without an engine: what is refused, left out, and taken from the file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.controls import Power
from harness.errors import EnvironmentFault, UsageError
from harness.model import CONTROLLER
from harness.runner import Plan, plan, run
from harness.runner.manifest import manifest, now
from harness.scenario import load
from harness.targets.compose.inspected_stack import InspectedStack
from harness.targets.compose.kafka_source import ComposeSource
from harness.targets.compose.kind import KIND, Found
from harness.targets.compose.ownership import owner
from harness.targets.kafka.releases import release
from harness.targets.kafka.source_kind import OneRelease
from harness.targets.kafka.system import RealKafka
from harness.targets.kinds import KINDS, with_pattern
from tests.harness.runner.mix_of import mix_of
from tests.harness.targets.compose.files import APACHE_COMBINED, BITNAMI, read
from tests.harness.targets.compose.scripted_engine import scripted_engine

TARGET = "compose:stack.yml"
KRAFT = Path(__file__).parents[3] / "compose" / "kafka-kraft.yml"

Planned = Callable[..., Plan]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planned:
    """Plans a shipped scenario for a compose file with this text."""

    def made(
        scenario: str,
        text: str = APACHE_COMBINED,
        *,
        takes_shim: bool = True,
        overrides: Mapping[str, str] | None = None,
    ) -> Plan:
        kafka = InspectedStack(read(text), {}, (), release("4.1.0"), takes_shim)
        found = Found(kafka, OneRelease(ComposeSource(kafka)))
        monkeypatch.setitem(KINDS.own, KIND.name, dataclasses.replace(KIND, find=lambda _: found))
        monkeypatch.setattr("harness.targets.kafka.shim.is_available", lambda: True)
        return plan(load(scenario), TARGET, overrides=overrides or {})

    return made


def with_variable(written: str) -> str:
    """The file with one more setting of every broker."""
    return APACHE_COMBINED.replace("KAFKA_AUTO_CREATE_TOPICS_ENABLE: false", f"KAFKA_{written}")


def kinds(made: Plan) -> list[tuple[str, object]]:
    return [(one.fault.kind, one.fault.parameters().get("node")) for one in mix_of(made).faults.values()]


def test_a_run_begins_with_removing_containers_that_no_journal_tells_of(
    planned: Planned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'docker.sock'}")
    *somebody, _ = owner().split()
    nowhere, said = tmp_path / "runs", list[str]()
    nowhere.touch()
    with scripted_engine(tmp_path / "docker.sock") as engine:
        engine.add("seawall-00000001", " ".join([*somebody, "1"]))
        with pytest.raises(EnvironmentFault, match="runs"):
            run(planned("random-chaos"), nowhere, said.append)
        assert not engine.left
    assert "Project seawall-00000001 was abandoned" in said[0]


def test_clocks_are_left_out_of_a_random_mix_where_the_shim_has_no_effect_and_that_is_said(planned: Planned) -> None:
    made = planned("random-chaos", takes_shim=False)
    assert "clock" not in dict(kinds(made))
    assert any("no effect in image apache/kafka:4.1.0" in sentence for sentence in mix_of(made).left_out.values())
    resolved = made.resolved()
    assert resolved["settings"]["log.dirs.count"] == 1
    assert [fault["fault"] for fault in resolved["scenario"]["chaos"]["faults"]] == [kind for kind, _ in kinds(made)]
    assert resolved["left_out"] == list(mix_of(made).left_out.values())


def test_where_brokers_are_the_controllers_the_active_one_is_killed_for_the_controller(planned: Planned) -> None:
    made = planned("random-chaos")
    assert ("kill", CONTROLLER) in kinds(made)
    assert ("kill", "leader") in kinds(made)
    assert "clock" in dict(kinds(made))


def test_a_power_loss_is_planned_where_controllers_are_nodes_of_their_own_and_the_shim_has_an_effect(
    planned: Planned,
) -> None:
    shipped = KRAFT.read_text()
    made = planned("all-page-caches-lost", shipped)
    assert isinstance(made.system, RealKafka)
    assert Power in made.system.source.controls
    with pytest.raises(UsageError, match=r"cannot do 'power_loss'.*own, or --target process:RELEASE#combined"):
        planned("all-page-caches-lost")
    with pytest.raises(UsageError, match=r"cannot do 'power_loss'.*shim, built here, has no effect in image"):
        planned("all-page-caches-lost", shipped, takes_shim=False)


def test_a_file_with_too_few_brokers_is_refused_with_their_names(planned: Planned) -> None:
    with pytest.raises(UsageError, match=r"is about 3 brokers, and compose.yml has 1: kafka\."):
        planned("random-chaos", BITNAMI)


def test_settings_of_the_file_come_before_the_defaults_and_after_the_scenarios(planned: Planned) -> None:
    text = APACHE_COMBINED.replace(
        "KAFKA_AUTO_CREATE_TOPICS_ENABLE: false", "KAFKA_MIN_INSYNC_REPLICAS: 1\n          KAFKA_NUM_IO_THREADS: 9"
    )
    made = planned("random-chaos", text)
    assert isinstance(made.system, RealKafka)
    assert made.system.settings.properties["num.io.threads"] == "9"
    assert made.system.settings.properties["num.network.threads"] == "2"
    assert made.system.known_settings().min_insync_replicas == 2, "as the scenario says"


def test_brokers_that_differ_are_refused_but_in_what_the_run_says_itself(planned: Planned) -> None:
    text = APACHE_COMBINED.replace("KAFKA_NODE_ID: 2", "KAFKA_NODE_ID: 2\n          KAFKA_NUM_IO_THREADS: 9")
    with pytest.raises(UsageError, match=r"compose\.yml: services differ in num\.io\.threads: .*--set settings"):
        planned("random-chaos", text)
    made = planned("random-chaos", text, overrides={"settings.num.io.threads": "3"})
    assert isinstance(made.system, RealKafka)
    assert made.system.settings.properties["num.io.threads"] == "3"


@pytest.mark.parametrize("variable", ["METRIC_REPORTERS: org.example.Reporter", "SOCKET_SEND_BUFFER_BYTES: 102400"])
def test_what_decides_nothing_stays_with_the_one_broker_that_has_it(planned: Planned, variable: str) -> None:
    text = APACHE_COMBINED.replace("KAFKA_NODE_ID: 2", f"KAFKA_NODE_ID: 2\n          KAFKA_{variable}")
    made = planned("random-chaos", text)
    assert isinstance(made.system, RealKafka)
    assert not {"metric.reporters", "socket.send.buffer.bytes"} & made.system.settings.properties.keys()


@pytest.mark.parametrize(
    ("variable", "permitted"),
    [
        ("LOG_RETENTION_MS: 5000", True),
        ("LOG_RETENTION_MINUTES: 1", True),
        ("LOG_RETENTION_HOURS: 1", True),
        ("LOG_RETENTION_BYTES: 1048576", True),
        ("LOG_RETENTION_BYTES: -1", False),
        ("LOG_RETENTION_MS: -1", False),
        ("LOG_RETENTION_CHECK_INTERVAL_MS: 5000", False),
        ("LOG_CLEANUP_POLICY: delete", False),
    ],
)
def test_what_the_files_retention_deletes_is_documented(planned: Planned, variable: str, permitted: bool) -> None:
    made = planned("random-chaos", with_variable(variable))
    assert manifest(made, "r", now()).guarantees["retention"] is permitted


def test_a_retention_of_the_file_is_no_excuse_where_the_scenario_lifts_it(planned: Planned) -> None:
    lifted = {"settings.log.retention.bytes": "-1"}
    made = planned("random-chaos", with_variable("LOG_RETENTION_BYTES: 1048576"), overrides=lifted)
    assert manifest(made, "r", now()).guarantees["retention"] is False


def test_a_file_that_has_records_compacted_is_refused_unless_the_run_forbids_it(planned: Planned) -> None:
    text = with_variable("LOG_CLEANUP_POLICY: 'compact,delete'")
    with pytest.raises(UsageError, match=r"log\.cleanup\.policy: 'compact,delete': .*--set settings"):
        planned("random-chaos", text)
    assert planned("random-chaos", text, overrides={"settings.log.cleanup.policy": "delete"})


def test_run_json_says_which_service_is_which_broker_and_how_to_run_it_again(planned: Planned) -> None:
    told = manifest(planned("random-chaos"), "r", now())
    assert told.configuration["compose"]["brokers"]["1"] == {
        "service": "broker-2",
        "id": 2,
        "image": "apache/kafka:4.1.0",
    }
    assert f"--target {TARGET}" in told.configuration["reproduce"]
    assert told.versions["kafka"] == "4.1.0"
    assert "java" not in told.versions, "that of this machine runs nothing"
    assert told.guarantees["timeline"] == "sampled"


def test_several_log_directories_are_refused(planned: Planned) -> None:
    with pytest.raises(UsageError, match="has 2 log directories for each broker"):
        planned("random-chaos", overrides={"settings.log.dirs.count": "2"})


def test_a_pattern_of_services_is_for_compose_files_alone() -> None:
    assert with_pattern("compose:stack.yml", "kafka*") == "compose:stack.yml#kafka*"
    with pytest.raises(
        UsageError, match="--service-pattern 'kafka\\*' is for --target compose:FILE, not for 'builtin'"
    ):
        with_pattern("builtin", "kafka*")
