"""A bug in a plugin is one sentence that names it, wherever it shows: seawall itself is not to blame."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import faults
import workloads
from checkers import registry
from harness.clock import SystemClock
from harness.errors import EnvironmentFault
from harness.fault import Fault
from harness.plugins import plugins_answer_for_themselves
from harness.runner.journal import Journal, heal_leftovers, journal_directory
from harness.runner.nemesis import Nemesis
from harness.targets import kinds
from harness.testing.scripted_target import ScriptedTarget
from tests.harness.cli.calling import Said, Seawall
from tests.harness.cli.conftest import seawall
from tests.plugins.distributions import Install, install

__all__ = ["install", "seawall"]

JINX = '''
from faults.pause import Pause

LOOKS = []


class Jinx(Pause):
    """Pauses a node; one of its methods has a bug."""

    kind = "jinx"
    traits = Pause.traits
    bug: str

    def inject(self, target):
        self._fail("inject")
        target.pause(self.name)

    def probe(self, target):
        seen = target.is_paused(self.name)
        if seen.holds:
            LOOKS.append(self.bug)
            self._fail("probe")
            self._fail("last look" if len(LOOKS) > 1 else "")
        return None if seen.holds and self.bug == "receipt" else seen

    def heal(self, target):
        self._fail("heal")
        target.resume(self.name)

    def _fail(self, here):
        if self.bug == here:
            raise ValueError("jinxed.")
'''

LOAD = """
from harness.workload import Workload, WorkloadKind
from workloads.unique_sends import KIND as SENDS


class Idle(Workload):
    def start(self):
        raise ZeroDivisionError("no pace")


class Busy(Workload):
    def start(self):
        self.begin(self._send())

    async def _send(self):
        await self.clients.sleep(0.1)
        return {}["a second"]


IDLE = WorkloadKind("idle", SENDS.parameters, lambda parameters, context: Idle(context), SENDS.example)
BUSY = WorkloadKind("busy", SENDS.parameters, lambda parameters, context: Busy(context), SENDS.example)
NOTHING = WorkloadKind("nothing", SENDS.parameters, lambda parameters, context: None, SENDS.example)
BARE = WorkloadKind("bare", SENDS.parameters, lambda parameters: None, SENDS.example)
SLOW = WorkloadKind("slow", SENDS.parameters, lambda parameters, context: Idle(context), {"rate": -1})
"""

TARGET = """
from harness.targets.cluster_kind import ClusterKind
from harness.targets.simulated import KIND as SIMULATED, SimulatedTarget


class Clockless:
    def __init__(self, target):
        self._target = target
        self.controls, self.name = frozenset(), "clockless"

    def __getattr__(self, name):
        return getattr(self._target, name)


def make(*given, **named):
    return Clockless(SIMULATED.make(*given, **named))


KIND = ClusterKind("clockless", SimulatedTarget.controls, make, in_virtual_time=True)
"""

OTHER_TARGET = """
from harness.targets.cluster_kind import ClusterKind, InVirtualTime
from harness.targets.simulated import KIND as SIMULATED, SimulatedTarget


class Other:
    name = "other"
    controls = SimulatedTarget.controls

    def __init__(self, target):
        self._target = target


def asks(name):
    return property(lambda self: getattr(self._target, name))


wanted = {one for each in (InVirtualTime, *Other.controls) for one in dir(each) if not one.startswith("_")}
for name in wanted - WITHOUT:
    setattr(Other, name, asks(name))


KIND = ClusterKind(
    "other", Other.controls, lambda *given, **named: Other(SIMULATED.make(*given, **named)), in_virtual_time=True
)
"""

MESSY = """
from harness.targets.cluster_kind import ClusterKind
from harness.targets.leftovers import Leftovers
from harness.targets.simulated import KIND as SIMULATED


def remove(what):
    if what["bug"] == "raises":
        raise OSError("stuck")
    return {"none": [what["pod"]], "returns": None}[what["bug"]]


KIND = ClusterKind("messy", frozenset(), SIMULATED.make, leftovers=Leftovers("pods", remove))
TIDY = ClusterKind("tidy", frozenset(), SIMULATED.make)
BARE = ClusterKind("bare", frozenset(), SIMULATED.make, leftovers=Leftovers("pods", lambda: []))
VAGUE = ClusterKind("vague", frozenset(), SIMULATED.make, leftovers=remove)
"""

CHECKER = """
import dataclasses

from checkers.views.conclusion import Conclusion
from checkers.views.fault_journal import FaultJournal
from checkers.stuck import KINDS as OWN
from harness.findings import Finding

KINDS = (dataclasses.replace(OWN[0], name="declared"),)


def conclude(journal: FaultJournal):
    yield Conclusion(Finding(journal.run, "undeclared", "", -1), "It was not declared.", ())
"""

CRUDE = CHECKER.partition("    yield")[0] + "    return iter({}[journal.run])\n"

SCENARIO = """
id: broken
title: a pause, and a fault of a plugin
source: this test
cluster: {brokers: 3}
topics: [{name: ledger, partitions: 1, replication_factor: 3}]
workload: {name: unique_sends, rate: 20}
schedule:
  - inject: {as: sound, fault: pause, node: 1}
  - wait_s: 1
"""


def ran(seawall: Seawall, path: Path, scenario: str, target: str = "simulated") -> Said:
    (path / "broken.yaml").write_text(scenario)
    return seawall("run", path / "broken.yaml", "--target", target, "--engine", "reference", "--out", path / "runs")


def blamed(said: Said, *words: str) -> None:
    """It is one sentence about the plugin, and exit code 4."""
    assert said.code == 4, said.err
    assert all(word in said.complaint for word in words), said.complaint
    assert said.complaint.endswith(". Mend it, or uninstall that distribution.")
    assert "Traceback" not in said.err
    assert "bug in seawall" not in said.err


def test_a_fault_that_fails_to_heal_is_named_and_the_others_are_healed(
    install: Install, seawall: Seawall, tmp_path: Path
) -> None:
    install("jinxes", {"seawall.faults": {"jinx": "jinxes:Jinx"}}, jinxes=JINX)
    steps = "  - inject: {as: jinxed, fault: jinx, node: 2, bug: heal}\n  - heal: jinxed\n"
    said = ran(seawall, tmp_path, SCENARIO + steps)
    blamed(
        said, "plugin 'jinx' (seawall.faults, jinxes:Jinx) of jinxes 1.0 has failed: ValueError: jinxed, at jinxes.py:"
    )
    (run,) = (path.parent for path in (tmp_path / "runs/broken").glob("*/run.json"))
    manifest = json.loads((run / "run.json").read_text())
    assert manifest["state"] == "abandoned"
    assert "plugin 'jinx'" in manifest["why"]
    assert "Traceback" in "".join(path.read_text() for path in run.rglob("clients.log"))
    rows = [row for file in run.rglob("faults*.parquet") for row in pq.read_table(file).to_pylist()]
    assert {row["fault"]: row["heal_proven_ns"] is not None for row in rows} == {"sound": True, "jinxed": False}


@pytest.mark.parametrize(
    ("bug", "error"),
    [
        ("inject", "ValueError: jinxed"),
        ("probe", "ValueError: jinxed"),
        ("receipt", "its probe returned None"),
        ("last look", "ValueError: jinxed"),
        ("heal", "ValueError: jinxed"),
    ],
)
def test_a_fault_with_a_bug_is_named_and_is_healed_as_are_the_others(
    install: Install, tmp_path: Path, bug: str, error: str
) -> None:
    install("jinxes", {"seawall.faults": {"jinx": "jinxes:Jinx"}}, jinxes=JINX)
    target = ScriptedTarget(3)
    with Journal(tmp_path / "journal") as journal:
        nemesis = Nemesis(target, journal, SystemClock(), 1, lambda line: None)
        sound = nemesis.inject("sound", faults.parse({"fault": "partition", "links": [[0, 1]]}, "test"))
        with pytest.raises(EnvironmentFault, match=f"plugin 'jinx'.*{error}"), plugins_answer_for_themselves():
            _inject_and_heal(nemesis, faults.parse({"fault": "jinx", "node": 2, "bug": bug}, "test"))
    assert sound.heal_proven_ns is not None
    assert target.is_paused("2").holds == (bug == "heal")


def _inject_and_heal(nemesis: Nemesis, fault: Fault) -> None:
    try:
        nemesis.inject("jinxed", fault)
    finally:
        nemesis.heal_all()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("idle", "has failed: ZeroDivisionError: no pace, at loads.py:8."),
        ("busy", "has failed: KeyError: 'a second', at loads.py:17."),
        ("nothing", "cannot be used: it made None, no Workload."),
    ],
)
def test_a_workload_with_a_bug_is_named(
    install: Install, seawall: Seawall, tmp_path: Path, name: str, why: str
) -> None:
    install("loads", {"seawall.workloads": {name: f"loads:{name.upper()}"}}, loads=LOAD)
    said = ran(seawall, tmp_path, SCENARIO.replace("unique_sends", name))
    blamed(said, f"plugin '{name}' (seawall.workloads, loads:{name.upper()}) of loads 1.0 {why}")


def test_a_target_in_virtual_time_need_not_be_the_simulated_one(
    install: Install, seawall: Seawall, tmp_path: Path
) -> None:
    whole = OTHER_TARGET.replace("WITHOUT", "set()")
    install("other", {"seawall.targets": {"other": "other_target:KIND"}}, other_target=whole)
    assert ran(seawall, tmp_path, SCENARIO, "other").code == 0


@pytest.mark.parametrize("missing", ["clock", "new_clients"])
def test_a_target_in_virtual_time_without_its_clock_or_clients_is_named(
    install: Install, seawall: Seawall, tmp_path: Path, missing: str
) -> None:
    lacking = OTHER_TARGET.replace("WITHOUT", f"{{{missing!r}}}")
    install("other", {"seawall.targets": {"other": "other_target:KIND"}}, other_target=lacking)
    blamed(ran(seawall, tmp_path, SCENARIO, "other"), f"what it makes, Other, does not have '{missing}'.")


def test_a_target_without_what_it_must_have_is_named(install: Install, seawall: Seawall, tmp_path: Path) -> None:
    install("clockless", {"seawall.targets": {"clockless": "clockless_target:KIND"}}, clockless_target=TARGET)
    said = ran(seawall, tmp_path, SCENARIO, "clockless")
    blamed(said, "plugin 'clockless' (seawall.targets,", "what it makes, Clockless, does not have 'bootstrap'.")


@pytest.mark.parametrize(
    ("bug", "said"),
    [
        ("none", "; removed p1."),
        (
            "raises",
            "and its pods are still there: plugin 'messy' (seawall.targets, messy:KIND) of messy 1.0 has failed",
        ),
        ("returns", "cannot be used: its leftovers' 'remove' returned None, no list of texts."),
    ],
)
def test_a_target_that_cannot_remove_what_it_left_is_named_and_the_journal_keeps_it(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str, said: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "journals"))
    install("messy", {"seawall.targets": {"messy": "messy:KIND"}}, messy=MESSY)
    with Journal(tmp_path / "run") as journal:
        with pytest.raises(TypeError):
            journal.leftover_coming("messy", {"pod": tmp_path})
        journal.leftover_coming("messy", {"pod": "p1", "bug": bug})
        assert heal_leftovers() == []
        (path,) = journal_directory().glob("*.json")
        entries = json.loads(path.read_text())
    dead = {**entries, "owner": {**entries["owner"], "boot": "an earlier one"}}
    path.write_text(json.dumps(dead))
    (line,) = heal_leftovers()
    assert said in line
    assert path.exists() is (bug != "none")


def test_a_target_that_leaves_what_its_kind_cannot_remove_is_named_before_it_is_there(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "journals"))
    install("tidy", {"seawall.targets": {"tidy": "messy:TIDY"}}, messy=MESSY)
    with Journal(tmp_path / "run") as journal, pytest.raises(EnvironmentFault, match=r"'tidy'.*has no leftovers"):
        journal.leftover_coming("tidy", {"pod": "p1"})


def test_a_checker_that_finds_what_it_has_not_declared_is_named_and_the_run_is_kept(
    install: Install, seawall: Seawall, tmp_path: Path
) -> None:
    install("sloppy", {"seawall.checkers": {"sloppy": "sloppy"}}, sloppy=CHECKER)
    said = ran(seawall, tmp_path, SCENARIO)
    blamed(said, "plugin 'sloppy' (seawall.checkers,", "it found 'undeclared', which is not in its KINDS.")
    (run,) = (tmp_path / "runs/broken").glob("*/run.json")
    assert json.loads(run.read_text())["state"] == "complete"
    install(
        "crude",
        {"seawall.checkers": {"crude": "crude"}},
        crude=CRUDE,
    )
    (tmp_path / "installed/sloppy-1.0.dist-info/entry_points.txt").unlink()
    blamed(seawall("check", run.parent, "--engine", "reference"), "plugin 'crude'", "has failed: KeyError")


@pytest.mark.parametrize(
    ("group", "entry", "why"),
    [
        ("seawall.workloads", "loads:BARE", "its 'make' takes other arguments"),
        ("seawall.workloads", "loads:SLOW", "its example.rate"),
        ("seawall.faults", "jinxes:Dizzy", "it does not define 'clock_error_ms'"),
        ("seawall.faults", "jinxes:Deaf", "its 'probe' takes other arguments"),
        ("seawall.targets", "aims:KIND", "is no function that makes it"),
        ("seawall.targets", "messy:BARE", "its leftovers' 'remove' takes other arguments"),
        ("seawall.targets", "messy:VAGUE", "its leftovers are <function remove at 0x.*>, no Leftovers"),
        ("seawall.checkers", "vague", "one of its kinds follows from 'nonsense', and there is no such kind"),
        ("seawall.checkers", "curt", "a parameter of its 'conclude' has no type at run time"),
        ("seawall.checkers", "greedy", "its 'conclude' takes 'journal', of a type that no rule is given"),
    ],
)
def test_a_flaw_that_shows_before_a_run_is_named_when_the_plugin_is_loaded(
    install: Install, group: str, entry: str, why: str
) -> None:
    dizzy = "class Dizzy(Jinx):\n    kind = 'dizzy'\n    traits = dataclasses.replace(Jinx.traits, moves_clock=True)\n"
    deaf = "class Deaf(Jinx):\n    kind = 'deaf'\n    def probe(self):\n        pass\n"
    modules = {
        "loads": LOAD,
        "jinxes": f"import dataclasses\n{JINX}\n{dizzy}\n{deaf}",
        "aims": "from harness.targets.cluster_kind import ClusterKind\nKIND = ClusterKind('aims', frozenset(), None)\n",
        "messy": MESSY,
        "vague": CHECKER.replace('name="declared"', 'name="declared", follows_from=("nonsense",)'),
        "curt": CHECKER.replace("conclude(journal: FaultJournal)", "conclude(journal)"),
        "greedy": CHECKER.replace("conclude(journal: FaultJournal)", "conclude(journal: dict)"),
    }
    module, _, attribute = entry.partition(":")
    name = attribute.lower().replace("kind", "") or module
    install("flawed", {group: {name: entry}}, **{module: modules[module]})
    (own,) = (one for one in (faults.KINDS, workloads.KINDS, kinds.KINDS, registry.CHECKERS) if one.group == group)
    with pytest.raises(EnvironmentFault, match=f"plugin '{name}' .* cannot be used: .*{why}.*\\."):
        own[name]


def test_doctor_fails_over_a_broken_checker_and_names_what_is_not_used(install: Install) -> None:
    from harness.cli.machine import plugins

    install("one", {"seawall.faults": {"jinx": "jinxes:Jinx", "kill": "jinxes:Jinx"}}, jinxes=JINX)
    install("two", {"seawall.faults": {"jinx": "jinxes:Jinx"}, "seawall.checkers": {"sloppy": "gone"}})
    found = {(one.subject, one.seen.partition(":")[0]): one for one in plugins()}
    assert found["plugin jinx", "one 1.0"].present
    unused = found["plugin jinx", "two 1.0"]
    assert (unused.present, unused.required, unused.else_it_is) == (False, False, "unused")
    assert "not used, one 1.0 has 'jinx', too" in unused.seen
    assert "not used, seawall has 'kill' itself" in found["plugin kill", "one 1.0"].seen
    (broken,) = (one for one in found.values() if one.subject == "plugin sloppy")
    assert (broken.present, broken.required, broken.else_it_is) == (False, True, "broken")


def test_the_schema_of_scenarios_leaves_out_a_broken_plugin_with_a_warning(install: Install, seawall: Seawall) -> None:
    entries = {"broken": "jinxes:Missing", "jinx": "jinxes:Jinx"}
    install("jinxes", {"seawall.faults": entries, "seawall.workloads": {"lost": "nowhere"}}, jinxes=JINX)
    said = seawall("schema", "scenario")
    assert said.code == 0
    parts = json.loads(said.out)["$defs"]
    assert "inject_jinx" in parts
    assert "inject_broken" not in parts
    assert [line[:34] for line in said.err.splitlines()] == [
        "seawall: left out: plugin 'broken'",
        "seawall: left out: plugin 'lost' (",
    ]
