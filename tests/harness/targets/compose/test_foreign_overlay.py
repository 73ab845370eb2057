"""What is added to a compose file with brokers of another make, and what becomes of the file then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.client_properties import PLAINTEXT
from harness.runner.journal import NothingToUndo
from harness.targets.compose.beside import Addition, Ports, Surroundings
from harness.targets.compose.composed_nodes import OVERLAY
from harness.targets.compose.foreign_overlay import overlay, shown
from harness.targets.compose.foreign_stack import ForeignStack
from harness.targets.compose.foreign_target import ForeignTarget
from harness.targets.compose.rewriting import kept, rewritten
from tests.harness.targets.compose.foreign_files import IN_VARIABLES, REDPANDA_THREE, parsed, read

NODES = range(3)
PORTS = Ports(
    clients={str(node): 21000 + node for node in NODES},
    advertised={str(node): 26000 + node for node in NODES},
    harness={str(node): 22000 + node for node in NODES},
    toxiproxy=23000,
    probe=24000,
    controller=25000,
)

WITH_SECRETS = """
    services:
      broker:
        image: example/broker
        command: [start, --advertise-kafka-addr, "localhost:19092", --set, secret_key=hunter2]
        environment: {FLAGS: "--address localhost:19092 --password hunter2"}
        ports: ["19092:9092"]
"""


def made(text: str, **clocks: Addition) -> tuple[dict[str, Any], dict[str, Any]]:
    """The overlay, and the file that Compose gets."""
    file, stack = read(text), parsed(text)
    run = Surroundings(
        project="seawall-1",
        owner="me",
        ports=PORTS,
        clocks=clocks,
        tools_image="tools",
        toxiproxy_image="toxiproxy",
        disk_mib=64,
    )
    added = overlay(file, stack, run)
    return added, rewritten(stack, added, kept(stack, [one.name for one in file.brokers]), "seawall-1")


def test_clients_are_told_of_toxiproxy_and_peers_find_each_other_as_they_did() -> None:
    _, stack = made(REDPANDA_THREE)
    command = stack["services"]["redpanda-1"]["command"]
    assert "--advertise-kafka-addr internal://redpanda-1:9092,external://127.0.0.1:26001" in command
    assert "--kafka-addr internal://0.0.0.0:9092,external://0.0.0.0:29092" in command
    assert "--advertise-pandaproxy-addr internal://redpanda-1:8082,external://localhost:28082" in command
    assert stack["services"]["redpanda-1"]["ports"] == ["127.0.0.1:22001:29092"]


def test_an_address_is_replaced_in_a_variable_too_and_no_other_variable_is_added() -> None:
    added, stack = made(IN_VARIABLES)
    assert added["services"]["tansu"]["environment"] == {"ADVERTISED_LISTENER_URL": "tcp://127.0.0.1:26000"}
    assert stack["services"]["tansu"]["environment"]["STORAGE_ENGINE"] == "memory://tansu/"
    assert "command" not in stack["services"]["tansu"]


def test_of_commands_and_variables_in_which_an_address_is_replaced_that_alone_is_written_down() -> None:
    shim = Addition({"LD_PRELOAD": "/seawall/shim/shim.so"}, ["/run/shim:/seawall/shim"])
    added, stack = made(WITH_SECRETS, broker=shim)
    assert stack["services"]["broker"]["command"][2:] == ["127.0.0.1:26000", "--set", "secret_key=hunter2"]
    written = shown(added, read(WITH_SECRETS), PORTS)
    assert "hunter2" not in str(written)
    broker = written["services"]["broker"]
    assert broker["command"] == broker["environment"]["FLAGS"] == "... 127.0.0.1:26000 ..."
    assert broker["environment"]["LD_PRELOAD"] == "/seawall/shim/shim.so"
    changed = ("command", "environment")
    assert {**broker, **{key: added["services"]["broker"][key] for key in changed}} == added["services"]["broker"]
    assert {**written, "services": added["services"]} == added


def test_the_run_directory_has_no_command_of_the_file(tmp_path: Path) -> None:
    stack = parsed(WITH_SECRETS)
    foreign = ForeignStack(read(WITH_SECRETS), stack, kept(stack, ["broker"]), "It has none.", PLAINTEXT)
    target = ForeignTarget(tmp_path, foreign, {}, {}, NothingToUndo())
    target._ports = PORTS
    assert "hunter2" in str(target._stack("seawall-1", PORTS))
    assert "127.0.0.1:26000" in (written := (tmp_path / OVERLAY).read_text())
    assert "hunter2" not in written


def test_nothing_but_brokers_runs_and_what_two_runs_would_fight_for_is_taken_away() -> None:
    _, stack = made(REDPANDA_THREE)
    brokers = {"redpanda-0", "redpanda-1", "redpanda-2"}
    assert set(stack["services"]) == {*brokers, "seawall-holder", "seawall-toxiproxy"}
    assert {stack["services"][name]["container_name"] for name in brokers} == {f"seawall-1-{name}" for name in brokers}
    assert all(stack["services"][name]["restart"] == "no" for name in brokers)
    assert stack["services"]["seawall-toxiproxy"]["networks"] == {"redpanda_network": {}}


def test_a_volume_of_limited_size_that_the_holder_keeps_is_where_the_data_goes() -> None:
    _, stack = made(REDPANDA_THREE)
    [disk] = stack["services"]["redpanda-2"]["volumes"]
    assert (disk["source"], disk["target"]) == ("seawall-redpanda-2", "/var/lib/redpanda/data")
    assert disk["volume"] == {"nocopy": True}
    assert stack["volumes"]["seawall-redpanda-2"]["driver_opts"]["o"] == "size=64m,mode=1777"
    assert "redpanda-2" not in stack["volumes"]
    assert "seawall-redpanda-2:/volumes/redpanda-2" in stack["services"]["seawall-holder"]["volumes"]


def test_the_shim_comes_with_its_variables_and_its_directory() -> None:
    shim = Addition({"LD_PRELOAD": "/seawall/shim/shim.so"}, ["/run/shim:/seawall/shim"])
    added, _ = made(IN_VARIABLES, tansu=shim)
    assert added["services"]["tansu"]["environment"]["LD_PRELOAD"] == "/seawall/shim/shim.so"
    assert added["services"]["tansu"]["volumes"] == ["/run/shim:/seawall/shim"]
