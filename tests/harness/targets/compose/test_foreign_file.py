"""Which services of a compose file are brokers of another make, and where clients find them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.targets.compose.compose_file import has_kafka
from harness.targets.compose.foreign_file import DISK_LABEL, LISTENER, names_listeners
from tests.harness.targets.compose.files import APACHE_COMBINED
from tests.harness.targets.compose.foreign_files import (
    IN_VARIABLES,
    REDPANDA_ONE,
    REDPANDA_THREE,
    TWO_ADDRESSES,
    parsed,
    read,
)

LABELLED = TWO_ADDRESSES.replace("labels: {}", f'labels: {{{LISTENER}: "19093"}}')


def refusal(text: str, pattern: str | None = None) -> str:
    with pytest.raises(UsageError) as refused:
        read(text, pattern)
    return str(refused.value)


@pytest.mark.parametrize(("text", "ports"), [(REDPANDA_ONE, [19092]), (REDPANDA_THREE, [19092, 29092, 39092])])
def test_redpandas_own_files_have_brokers_and_what_only_uses_them(text: str, ports: list[int]) -> None:
    file = read(text)
    assert [broker.name for broker in file.brokers] == [f"redpanda-{number}" for number, _ in enumerate(ports)]
    assert [broker.advertised for broker in file.brokers] == [f"localhost:{port}" for port in ports]
    assert [broker.port for broker in file.brokers] == ports
    assert {broker.disk for broker in file.brokers} == {"/var/lib/redpanda/data"}
    assert list(file.nodes) == [str(number) for number, _ in enumerate(ports)]
    assert not has_kafka(parsed(text))


def test_an_address_in_a_variable_counts_as_well_and_a_volume_need_not_be() -> None:
    [broker] = read(IN_VARIABLES).brokers
    assert (broker.name, broker.advertised, broker.port, broker.disk) == ("tansu", "localhost:9092", 9092, None)


def test_kafkas_own_file_is_one_of_advertised_listeners_too() -> None:
    assert [one.advertised for one in read(APACHE_COMBINED).brokers] == ["localhost:29092"]
    assert has_kafka(parsed(APACHE_COMBINED))


def test_which_of_two_addresses_is_meant_a_label_says() -> None:
    refused = refusal(TWO_ADDRESSES)
    assert "advertises localhost:19092 and localhost:19093, and which of them is for clients of Kafka" in refused
    assert f'{LISTENER}: "PORT"' in refused
    assert names_listeners(parsed(LABELLED))
    [broker] = read(LABELLED).brokers
    assert (broker.advertised, broker.port) == ("localhost:19093", 9093)


def test_a_label_of_a_port_that_nobody_is_told_of_is_refused() -> None:
    wrong = LABELLED.replace('"19093"}', '"19094"}')
    assert "no address with that port in its command or variables" in refusal(wrong)
    hidden = LABELLED.replace(', "127.0.0.1:19093:9093/tcp"', "")
    assert "or does not publish it, so that clients on this machine would not find it" in refusal(hidden)


def test_a_broker_that_only_its_network_finds_is_none() -> None:
    inside = REDPANDA_ONE.replace("external://localhost:19092", "external://redpanda-0:19092")
    assert "none of the services redpanda-0, console, create-topics is known for a broker" in (
        refusal(inside.replace("external://localhost:18082", "external://redpanda-0:18082"))
    )


def test_a_pattern_says_which_services_are_meant() -> None:
    assert [one.name for one in read(REDPANDA_THREE, "redpanda-[01]").brokers] == ["redpanda-0", "redpanda-1"]
    assert "none of the services console is known" in refusal(REDPANDA_THREE, "cons*")


@pytest.mark.parametrize(
    ("volumes", "disk"),
    [
        ("[data:/data]", "/data"),
        ("[data:/data, more:/more]", None),
        ("[data:/data:ro]", None),
        ("[./data:/data, data:/kept]", "/kept"),
        ("[./data:/data]", "/data"),
        ("[./compose.yml:/etc/broker.yml, ./data:/data]", "/data"),
    ],
)
def test_the_disk_is_the_only_volume_that_a_broker_can_write_to(
    volumes: str, disk: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("compose.yml").touch()
    text = IN_VARIABLES.replace("ports:", f"volumes: {volumes}\n        ports:") + "\n    volumes: {data: , more: }\n"
    [broker] = read(text).brokers
    assert broker.disk == disk


def test_a_label_names_the_disk_among_several_volumes_and_has_to_be_one() -> None:
    more = ("volumes: [data:/data, kept:/kept, settings:/settings:ro]", f"labels: {{{DISK_LABEL}: WHERE}}", "ports:")
    text = IN_VARIABLES.replace("ports:", "\n        ".join(more)) + "\n    volumes: {data: , kept: , settings: }\n"
    [broker] = read(text.replace("WHERE", "/kept")).brokers
    assert broker.disk == "/kept"
    for place in ("/elsewhere", "/settings"):
        says = f"seawall.disk={place}, and mounts nothing there that it can write to"
        assert says in refusal(text.replace("WHERE", place))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("network_mode: host", "nothing can be cut off"),
        ("deploy: {replicas: 3}", "is started 3 times"),
    ],
)
def test_what_could_not_be_harmed_is_refused(more: str, why: str) -> None:
    assert why in refusal(IN_VARIABLES.replace("ports:", f"{more}\n        ports:"))
