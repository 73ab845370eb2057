"""A distribution of its own adds a checker, faults, a workload and a target: installed beside seawall, and used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from checkers import check
from harness.checker import Outcome, Verdict
from tests.harness.cli.calling import Seawall
from tests.harness.cli.conftest import seawall

__all__ = ["seawall"]

TOY = Path(__file__).parent / "toy"

SCENARIO = """
id: a-hiccup
title: the leader has the hiccups while a trickle goes on
source: this test
cluster: {brokers: 3}
topics: [{name: ledger, partitions: 1, replication_factor: 3}]
workload: {name: trickle, per_second: 20}
schedule:
  - inject: {as: hic, fault: hiccup, node: leader}
  - wait_s: 2
  - heal: hic
  - wait_s: 1
"""


LOAD = "{name: unique_sends, rate: 20, producers: 1}"


class Installed:
    """An environment that sees the suite's packages, and the toy."""

    def __init__(self, path: Path, seawall: str = "seawall>=0.1,<0.2") -> None:
        venv.create(path / "env", with_pip=False)
        self.python = path / "env" / "bin" / "python"
        self.path = path
        own = Path(sysconfig.get_path("purelib", vars={"base": str(path / "env"), "platbase": str(path / "env")}))
        (own / "suite.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
        options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
        install = (
            sys.executable,
            "-m",
            "pip",
            "install",
            *options,
            "--target",
            str(own),
            str(_copy_of_toy(path, seawall)),
        )
        subprocess.run(install, check=True, capture_output=True, text=True)

    def seawall(self, *words: str, spark: bool = False) -> subprocess.CompletedProcess[str]:
        """Without Spark the reference engine decides alone, in a tenth of the time."""
        environment = os.environ if spark else os.environ | {"JAVA_HOME": "/nonexistent"}
        command = self.command(*words)
        return subprocess.run(command, cwd=self.path, env=environment, capture_output=True, text=True, check=False)

    def command(self, *words: str) -> list[str]:
        return [str(self.python), "-c", "import sys; from harness.entry import main; sys.exit(main())", *words]

    def scenario(self, text: str) -> str:
        (self.path / "scenario.yaml").write_text(text)
        return "scenario.yaml"


def _copy_of_toy(path: Path, seawall: str) -> Path:
    """The source, in a place where building may leave files, with what it requires of seawall."""
    copy = path / "toy"
    for file in TOY.rglob("*"):
        if file.suffix in (".py", ".toml"):
            (copy / file.relative_to(TOY)).parent.mkdir(parents=True, exist_ok=True)
            text = file.read_text().replace("seawall>=0.1,<0.2", seawall)
            (copy / file.relative_to(TOY)).write_text(text)
    return copy


ANOTHER_RUN = pytest.mark.nightly("by day a checker of that distribution judges a run with both")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("plugins"))


@pytest.mark.parametrize(
    ("generation", "numbered"),
    [
        pytest.param("0.10", False, marks=ANOTHER_RUN),
        pytest.param("4.1", True, marks=ANOTHER_RUN),
    ],
)
def test_a_scenario_uses_a_fault_and_a_workload_of_another_distribution(
    installed: Installed, generation: str, numbered: bool
) -> None:
    out = installed.path / generation
    ran = installed.seawall(
        "run", installed.scenario(SCENARIO), "--target", "simulated", "--generation", generation, "--out", str(out)
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (written,) = out.rglob("run.json")
    manifest = json.loads(written.read_text())
    assert manifest["guarantees"]["idempotent_producers"] is numbered
    workload = manifest["configuration"]["workload"]
    assert (workload["name"], workload["per_second"], workload["numbered"]) == ("trickle", 20, numbered)
    verdict = json.loads(next(out.rglob("verdict.json")).read_text())
    assert "hiccup" in json.dumps(verdict)


def test_a_scenario_runs_on_a_target_of_another_distribution_with_a_fault_that_only_that_one_can_do(
    installed: Installed,
) -> None:
    out, written = installed.path / "dozing", installed.scenario(SCENARIO.replace("fault: hiccup", "fault: doze"))
    ran = installed.seawall("run", written, "--target", "dozing", "--out", str(out))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (file,) = out.rglob("run.json")
    manifest = json.loads(file.read_text())
    assert manifest["guarantees"]["time"] == "virtual"
    assert not list(installed.path.glob("bed-*"))
    assert " --target dozing " in manifest["configuration"]["reproduce"]
    refused = installed.seawall("run", written, "--target", "simulated", "--out", str(out))
    assert refused.returncode == 64
    assert "target 'simulated' cannot do 'doze'" in " ".join(refused.stderr.split())


def test_a_run_on_a_target_that_is_not_installed_is_invalid(installed: Installed) -> None:
    (path,) = {file.parent for file in (installed.path / "dozing").rglob("run.json")}
    (verdict,) = check([path], engine="reference")
    assert verdict.outcome is Outcome.INVALID
    assert any("target 'dozing' is not known" in reason for reason in verdict.reasons), verdict.reasons


def test_what_a_killed_run_has_left_of_a_target_of_another_distribution_is_removed_by_that_one(
    installed: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seawall: Seawall
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "journals"))
    written = installed.scenario(SCENARIO.replace("wait_s: 2", "wait_s: 3600"))
    words = ("run", written, "--target", "dozing", "--out", str(tmp_path / "runs"))
    with subprocess.Popen(installed.command(*words), cwd=installed.path, stdout=subprocess.DEVNULL) as harness:
        beds = awaited(lambda: list(installed.path.glob("bed-*")), harness)
        harness.kill()
    (bed,) = beds
    for _ in range(2):
        said = " ".join(seawall("heal").out.split())
        assert "what its target has left is still there: the plugin of target 'dozing' is not installed." in said
    assert bed.exists()
    said = " ".join(installed.seawall("heal").stdout.split())
    assert "faults that were in force: hic (hiccup)" in said or "faults that were in force: none" in said
    assert f"; removed {bed}" in said
    assert not bed.exists()
    (manifest,) = (tmp_path / "runs").rglob("run.json")
    assert json.loads(manifest.read_text())["state"] == "abandoned"
    assert "abandoned" not in installed.seawall("heal").stdout


def awaited(look: Callable[[], list[Path]], harness: subprocess.Popen[bytes]) -> list[Path]:
    """What there is once there is something, while the harness runs."""
    while not (found := look()):
        assert harness.poll() is None, "it has ended before"
        time.sleep(0.01)
    return found


@pytest.mark.parametrize(
    "spark", [False, pytest.param(True, marks=pytest.mark.nightly("a JVM; by day the reference has the same checkers"))]
)
def test_a_checker_of_another_distribution_finds_a_violation_and_its_report_says_what_it_means(
    installed: Installed, *, spark: bool
) -> None:
    out, long = installed.path / f"long-{spark}", installed.scenario(SCENARIO.replace("wait_s: 2", "wait_s: 12"))
    ran = installed.seawall("run", long, "--target", "simulated", "--out", str(out), spark=spark)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    (verdict,) = out.rglob("verdict.json")
    kinds = {one["kind"] for one in json.loads(verdict.read_text())["anomalies"] if one["verdict"] == Verdict.VIOLATION}
    assert kinds == {"long-hiccup"}
    workload = json.loads((verdict.parent / "run.json").read_text())["configuration"]["workload"]
    assert (workload["name"], workload["per_second"], workload["numbered"]) == ("trickle", 20, True)
    assert "longer than ten seconds" in (verdict.parent / "report.html").read_text()


def test_doctor_lists_plugins_and_says_in_a_sentence_what_is_wrong_with_a_broken_one(installed: Installed) -> None:
    said = " ".join(installed.seawall("doctor").stdout.replace("│", " ").split())
    assert "seawall-toy 1.2" in said
    names = ("doze", "dozing", "hiccup", "long_hiccup", "misnamed", "trickle", "unfinished")
    assert all(f"plugin {name}" in said for name in names)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("unfinished", "RuntimeError: the toy has not been wound up"),
        pytest.param(
            "misnamed",
            "its kind is 'hiccup', not 'misnamed'.",
            marks=pytest.mark.nightly(
                "another process; by day doctor names it, and one that cannot be imported is used"
            ),
        ),
    ],
)
def test_a_broken_plugin_is_one_sentence_where_it_is_used(installed: Installed, fault: str, why: str) -> None:
    broken = SCENARIO.replace("fault: hiccup", f"fault: {fault}")
    ran = installed.seawall("run", installed.scenario(broken), "--target", "simulated")
    assert ran.returncode == 4
    said = " ".join(ran.stderr.split())
    assert f"plugin '{fault}' (seawall.faults," in said
    assert why in said
    assert "Traceback" not in said


@pytest.mark.nightly("one more process; by day test_validation suggests what is near")
def test_an_unknown_fault_is_refused_with_the_plugins_among_those_that_are_known(installed: Installed) -> None:
    ran = installed.seawall("run", installed.scenario(SCENARIO.replace("hiccup,", "hicup,")), "--target", "simulated")
    assert ran.returncode == 64
    assert "did you mean 'hiccup'" in " ".join(ran.stderr.split())


@pytest.mark.nightly("installs one more distribution; by day a broken plugin is one sentence where it is used")
def test_a_plugin_for_another_version_is_one_sentence_and_a_checker_among_them_ends_every_check(tmp_path: Path) -> None:
    later = Installed(tmp_path, "seawall>=99")
    ran = later.seawall("run", later.scenario(SCENARIO), "--target", "simulated")
    assert ran.returncode == 4
    assert "it requires seawall >=99, and this is 0.1" in " ".join(ran.stderr.split())
    own = SCENARIO.replace("fault: hiccup", "fault: pause").replace("{name: trickle, per_second: 20}", LOAD)
    ran = later.seawall("run", later.scenario(own), "--target", "simulated")
    assert ran.returncode == 4
    assert "plugin 'long_hiccup' (seawall.checkers," in " ".join(ran.stderr.split())
    assert "Traceback" not in ran.stderr
