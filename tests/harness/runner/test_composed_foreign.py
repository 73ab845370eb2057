"""Plans for brokers of another make in a compose file, without an engine: what is left out, refused, and recorded."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
import yaml

from checkers.completeness.guarantees_are_configured import misstated
from harness.controls import DiskSpace, Kills, Links, Pauses, Power, Processes, Shutdowns, WallClocks, WireTaps
from harness.errors import UsageError
from harness.observations import OBSERVATIONS, NodeStates
from harness.runner import Plan, plan
from harness.runner.manifest import manifest, now
from harness.scenario import Scenario, load, parse
from harness.target import Target, includes
from harness.targets.compose import compose_tool, foreign_stack, inspected_stack, kind
from harness.targets.compose.foreign_file import LISTENER
from harness.targets.compose.foreign_stack import ForeignStack
from harness.targets.compose.image import KafkaImage, NoKafka
from harness.targets.compose.kind import KIND
from harness.targets.kafka.releases import release
from tests.harness.runner.mix_of import mix_of
from tests.harness.targets.compose.files import APACHE_COMBINED
from tests.harness.targets.compose.foreign_files import IN_VARIABLES, REDPANDA_THREE, parsed

TARGET = "compose:stack.yml"
STATIC = "The clock shim moves nothing in the program of service 'tansu': it is linked statically, or in Go."
ONE = {"topic.replication_factor": "1", "settings.min.insync.replicas": "1"}

Planned = Callable[..., Plan]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planned:
    """Plans a scenario for a compose file with this text, whose images have no Kafka in them."""
    for module in (foreign_stack, inspected_stack):
        monkeypatch.setattr(module, "connected", Mock())
        monkeypatch.setattr(module, "provide_all", Mock())

    def made(
        text: str = REDPANDA_THREE, scenario: Scenario | None = None, no_clock: str = "", **overrides: str
    ) -> Plan:
        monkeypatch.setattr(compose_tool, "resolved", lambda _: parsed(text))
        monkeypatch.setattr(foreign_stack, "why_no_clock", lambda *_: no_clock)
        monkeypatch.setattr(inspected_stack, "look_into", Mock(side_effect=NoKafka("image broker has no Kafka in it.")))
        return plan(scenario or load("random-chaos"), TARGET, overrides=overrides)

    return made


def with_faults(*faults: dict[str, Any]) -> Scenario:
    document = yaml.safe_load(load("random-chaos").text)
    document["chaos"] |= {"faults": list(faults)}
    return parse(yaml.safe_dump(document))


def test_what_needs_nothing_of_the_program_can_be_done_and_the_rest_is_left_out_in_words(planned: Planned) -> None:
    made = planned()
    assert made.system.controls == {Kills, Pauses, Shutdowns, Links, DiskSpace, WallClocks, WireTaps}
    assert [one.fault.kind for one in mix_of(made).faults.values()].count("kill") == 3
    power, full = mix_of(made).left_out.values()
    assert "cannot do 'power_loss'. What such a program has flushed is not known." in power
    assert "'disk_full' with must_refuse is proven by the broker's own log" in full


def test_no_observation_but_that_of_containers_is_offered(planned: Planned) -> None:
    controls = planned().system.controls
    more: frozenset[type[Target]] = OBSERVATIONS | {Processes, Power}
    assert {one for one in more if includes(controls, one)} == {NodeStates}


def test_a_disk_needs_a_volume_and_a_clock_the_shim_and_links_two_brokers(planned: Planned) -> None:
    made = planned(IN_VARIABLES, no_clock=STATIC, **ONE)
    said = " ".join(mix_of(made).left_out.values())
    assert f"cannot do 'clock'. {STATIC}" in said
    assert "cannot do 'disk_full'. Service 'tansu' does not mount exactly one volume: give it one for its data" in said
    assert "'partition' cuts brokers off from each other, and stack.yml has one." in said
    with pytest.raises(UsageError, match="does not mount exactly one volume: give it one for its data"):
        planned(IN_VARIABLES, with_faults({"fault": "disk_full", "node": "any"}), **ONE)
    assert planned(IN_VARIABLES, with_faults({"fault": "partition", "links": [["clients", 0]]}), **ONE)


def test_a_disk_is_filled_where_a_file_that_does_not_fit_is_the_proof(planned: Planned) -> None:
    assert planned(scenario=with_faults({"fault": "disk_full", "node": "leader"}))


def test_replicas_that_the_brokers_cannot_hold_and_schedules_are_refused(planned: Planned) -> None:
    with pytest.raises(UsageError, match=r"has 3 replicas, and 'compose:stack\.yml' has 1 broker"):
        planned(IN_VARIABLES)
    with pytest.raises(UsageError, match="whose steps need brokers that seawall looks into"):
        planned(scenario=load("kip-101-double-failover"))


def test_run_json_says_that_clients_alone_have_seen_it_and_a_run_that_says_otherwise_is_incomplete(
    planned: Planned,
) -> None:
    told = manifest(planned(), "r", now())
    assert told.guarantees["timeline"] == "metadata"
    assert told.configuration["compose"]["brokers"]["2"] == {
        "service": "redpanda-2",
        "image": "docker.redpanda.com/redpandadata/redpanda:v25.2.1",
    }
    assert misstated(told) == []
    forged = {key: value for key, value in told.configuration["compose"].items() if key != "seen_by"}
    other = dataclasses.replace(told, configuration={**told.configuration, "compose": forged})
    assert any("timeline" in sentence for sentence in misstated(other))


def test_variables_of_kafka_count_for_nothing_where_no_image_has_kafka(planned: Planned) -> None:
    ports = APACHE_COMBINED.replace("image: apache", 'ports: ["29092:9092"]\n        image: apache')
    text = ports.replace("localhost:39092", "localhost:29092").replace("localhost:49092", "localhost:29092")
    made = planned(text)
    assert set(made.system.configuration()["compose"]["brokers"]["0"]) == {"service", "image"}
    with pytest.raises(UsageError, match=r"image broker has no Kafka in it, and stack\.yml: none of"):
        planned(APACHE_COMBINED.replace("localhost", "broker-1"))


def test_brokers_with_a_label_are_seen_by_clients_alone_even_where_they_are_kafkas(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned()
    monkeypatch.setattr(inspected_stack, "look_into", lambda *_: KafkaImage(release("4.1.0"), None, takes_shim=True))
    text = APACHE_COMBINED.replace("hostname: broker-1", f'labels: {{{LISTENER}: "29092"}}')
    monkeypatch.setattr(compose_tool, "resolved", lambda _: parsed(APACHE_COMBINED))
    assert not isinstance(kind.find("stack.yml").stack, ForeignStack)
    monkeypatch.setattr(compose_tool, "resolved", lambda _: parsed(text))
    found = kind.find("stack.yml").stack
    assert isinstance(found, ForeignStack)
    assert [broker.name for broker in found.file.brokers] == ["broker-1"]


def test_doctor_says_what_can_be_done_and_why_not_the_rest(planned: Planned) -> None:
    planned(IN_VARIABLES, no_clock=STATIC, **ONE)
    lines = {one.what: (one.works, one.seen) for one in KIND.tried("stack.yml")}
    assert lines["broker 0"] == (True, "service 'tansu' of image ghcr.io/tansu-io/tansu")
    assert lines["pause"] == (True, "possible")
    assert lines["clock"] == (None, f"not possible: {STATIC.removesuffix('.')}")
