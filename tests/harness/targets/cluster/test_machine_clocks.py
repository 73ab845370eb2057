"""What presets ask of a machine whose clock they step, by stand-ins for its ``date`` and ``timedatectl``."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from harness.errors import EnvironmentFault
from harness.targets.cluster.cluster_file import ClusterFile
from harness.targets.cluster.commanded_node import CommandedNode
from harness.targets.cluster.undo import of_skew, remove

HOUR_MS = 3_600_000
DATE = """\
#!/bin/sh
true_ms=$({date} +%s%3N)
offset=$(cat {at}/offset)
[ ! -e {at}/refuses ] || [ "$1" != -s ] || {{ echo "date: cannot set date: Operation not permitted" >&2; exit 1; }}
case "$1" in
-s) set_to=${{2#@}}; echo $((${{set_to%.*}}${{set_to#*.}} - true_ms)) >{at}/offset;;
+%s%3N) echo $((true_ms + offset));;
*) exit 1;;
esac
"""
TIMEDATECTL = """\
#!/bin/sh
echo "$*" >>{at}/asked
case "$1" in show) cat {at}/ntp;; set-ntp) [ "$2" = true ] && echo yes >{at}/ntp || echo no >{at}/ntp;; esac
"""


class Machine:
    """A machine with a clock that is not this one's.

    Attributes:
        node: of the preset, on it.
    """

    def __init__(self, directory: Path, preset: str) -> None:
        self._directory = directory
        variables = {"CLOCK_FILE": str(directory / "seawall-clock"), "PID_FILE": ""}
        file = ClusterFile.model_validate(
            {"bootstrap": ["a:9092"], "preset": preset, "variables": variables, "nodes": [{"id": 0}]}
        )
        self.node = CommandedNode(file, file.nodes[0])
        self.write("offset", "0")

    def write(self, name: str, content: str) -> None:
        """Let the machine be so."""
        (self._directory / name).write_text(f"{content}\n")

    def allow(self) -> None:
        """Let its clock be set again."""
        (self._directory / "refuses").unlink()

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self._directory / name).exists()

    def is_off_by(self, offset_ms: int) -> bool:
        """Whether its clock is, about."""
        return abs(self.node.clock().off_ms - offset_ms) < 1000

    def takes_time(self) -> bool:
        """Whether time servers set its clock."""
        return (self._directory / "ntp").read_text() == "yes\n"

    def asked(self) -> list[str]:
        """What ``timedatectl`` was asked to do."""
        lines = (self._directory / "asked").read_text().splitlines() if self.has("asked") else []
        return [line for line in lines if line.startswith("set-ntp")]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bool], Machine]:
    """Makes one, by a preset, with or without time servers."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in {"date": DATE, "timedatectl": TIMEDATECTL}.items():
        (programs / name).write_text(script.format(date=shutil.which("date"), at=tmp_path))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def made(preset: str, by_ntp: bool) -> Machine:
        one = Machine(tmp_path, preset)
        one.write("ntp", "yes" if by_ntp else "no")
        return one

    return made


@pytest.mark.parametrize("preset", ["systemd", "redpanda"])
def test_a_clock_is_stepped_from_true_time_and_back_without_time_servers(
    preset: str, machine: Callable[[str, bool], Machine]
) -> None:
    one = machine(preset, True)
    for offset_ms in (HOUR_MS, -HOUR_MS, 60_001):
        one.node.perform("skew", given={"OFFSET_MS": offset_ms})
        assert one.is_off_by(offset_ms)
        assert not one.takes_time()
    for _ in range(2):
        one.node.perform("unskew")
        assert one.is_off_by(0)
        assert one.takes_time()
        assert not one.has("seawall-clock")
    assert one.asked() == [*["set-ntp false"] * 3, "set-ntp true"]


def test_a_machine_that_asks_no_time_servers_does_not_ask_them_afterwards(
    machine: Callable[[str, bool], Machine],
) -> None:
    one = machine("systemd", False)
    one.node.perform("skew", given={"OFFSET_MS": HOUR_MS})
    one.node.perform("unskew")
    assert one.is_off_by(0)
    assert not one.takes_time()
    assert not one.asked()


def test_what_a_step_that_is_refused_has_changed_is_undone_and_a_clock_that_stays_wrong_is_told(
    machine: Callable[[str, bool], Machine],
) -> None:
    one = machine("systemd", True)
    one.write("refuses", "")
    with pytest.raises(EnvironmentFault, match=r"node 0: command 'skew' failed, .*cannot set date: Operation not"):
        one.node.perform("skew", given={"OFFSET_MS": HOUR_MS})
    assert not one.takes_time()
    one.node.perform("unskew")
    assert one.takes_time()
    one.allow()
    one.node.perform("skew", given={"OFFSET_MS": HOUR_MS})
    one.write("refuses", "")
    with pytest.raises(EnvironmentFault, match="command 'unskew' failed"):
        one.node.perform("unskew")
    assert one.is_off_by(HOUR_MS)


def test_the_clock_of_a_machine_is_undone_from_plain_data(machine: Callable[[str, bool], Machine]) -> None:
    one = machine("systemd", True)
    harm = json.loads(json.dumps(asdict(of_skew(one.node))))
    harm |= {"process": ["echo", "gone"], "stop": ["true"]}
    one.node.perform("skew", given={"OFFSET_MS": -HOUR_MS})
    assert remove(harm) == ["skewed clock of node 0"]
    assert one.is_off_by(0)
    assert one.takes_time()
