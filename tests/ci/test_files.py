"""The files for CI systems are what those systems take, and give no more rights than they need."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ci.actions import read
from tests.ci.jobs import ROOT
from tests.ci.other_systems import GITLAB, JENKINS

ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"
BUILT = "go compiles it for twenty seconds of a processor; by day the files are held against their schemas"
GROOVY = "org.apache.groovy:groovy:4.0.33"
DOCUMENT = ROOT / "docs/ci.md"
WORKFLOWS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / ".github/workflows").iterdir())
ON_GITHUB = [*WORKFLOWS, "action.yml"]


def schema_of(path: str) -> str:
    if path.startswith(".github/"):
        return "vendor.github-workflows"
    return "vendor.gitlab-ci" if "gitlab" in path else "vendor.github-actions"


def mappings(node: Any) -> Iterator[dict[Any, Any]]:
    """Every mapping in a document."""
    if isinstance(node, dict):
        yield node
    for one in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from mappings(one)


@pytest.fixture(scope="session")
def actionlint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("go") is None:
        pytest.skip("there is no go, which builds actionlint")
    place = tmp_path_factory.mktemp("go")
    environment = {**os.environ, "GOBIN": str(place), "GOFLAGS": "-modcacherw"}
    done = subprocess.run(("go", "install", ACTIONLINT), env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{ACTIONLINT} cannot be built: {done.stderr.strip().splitlines()[-1]}")
    return place / "actionlint"


@pytest.mark.nightly(BUILT)
def test_actionlint_finds_nothing(actionlint: Path) -> None:
    done = subprocess.run((str(actionlint), "-no-color"), cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.nightly(BUILT)
def test_actionlint_would_find_an_input_that_is_not_there(actionlint: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    nightly = tmp_path / ".github/workflows/nightly.yml"
    nightly.write_text(nightly.read_text().replace("shards: 4", "shard: 4"))
    (tmp_path / ".git").mkdir()
    done = subprocess.run((str(actionlint), "-no-color"), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, 'input "shard" is not defined' in done.stdout) == (1, True)


@pytest.mark.parametrize("path", [*ON_GITHUB, GITLAB.relative_to(ROOT).as_posix()])
def test_each_file_fits_the_schema_of_its_system(path: str) -> None:
    if find_spec("check_jsonschema") is None:
        pytest.skip("check-jsonschema is not installed")
    command = (sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema_of(path), path)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly("fetches a compiler with Maven, and starts a JVM")
def test_groovy_compiles_the_jenkinsfile(tmp_path: Path) -> None:
    if shutil.which("mvn") is None:
        pytest.skip("there is no mvn, which fetches Groovy")
    group, name, version = GROOVY.split(":")
    fetch = ("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={GROOVY}", f"-DoutputDirectory={tmp_path}")
    done = subprocess.run(fetch, cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{group}:{name} cannot be fetched")
    shutil.copy(JENKINS, tmp_path / "Jenkinsfile.groovy")
    compiler = ("java", "-cp", f"{name}-{version}.jar", "org.codehaus.groovy.tools.FileSystemCompiler")
    command = (*compiler, "-d", "classes", "Jenkinsfile.groovy")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_jenkinsfile_is_balanced_and_runs_the_merge_whatever_the_shards_come_to() -> None:
    text = re.sub(r"'''.*?'''|'[^']*'|\"[^\"]*\"|//.*", "''", JENKINS.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert [text.count(one) for one in "{(["] == [text.count(one) for one in "})]"]
    stages = re.findall(r"^ +stage\('(\w+)'\)", JENKINS.read_text(), re.MULTILINE)
    assert stages == ["Begin", "Shards", "Merge"]
    assert re.search(r"def shard\(number\) \{\s+catchError\(buildResult: 'FAILURE'", JENKINS.read_text())


def test_a_build_that_ended_before_its_merge_does_not_hide_what_those_before_it_kept() -> None:
    # lastCompleted() takes an aborted build, which has archived nothing, and optional: true then copies nothing.
    [[selector, filtered]] = re.findall(r"copyArtifacts .*?selector: (\w+)\(\),\s+filter: '(.*?)'", JENKINS.read_text())
    assert (selector, filtered) == ("lastWithArtifacts", "seawall-kept/**")
    archived = re.findall(r"archiveArtifacts artifacts: '(.*?)'", JENKINS.read_text())
    assert [filtered in one.split(", ") for one in archived] == [True]  # so that a build with artifacts has these


# -------------------------------------------------------------------------------------------------------------- rights


@pytest.mark.parametrize("path", WORKFLOWS)
def test_a_workflow_may_only_read_the_repository(path: str) -> None:
    document = read(path)
    assert document["permissions"] == {"contents": "read"}
    assert not [job for job in document["jobs"].values() if "permissions" in job]
    checkouts = [one for one in mappings(document) if str(one.get("uses", "")).startswith("actions/checkout@")]
    assert all(one["with"]["persist-credentials"] is False for one in checkouts)


@pytest.mark.parametrize("path", ON_GITHUB)
def test_no_expression_is_pasted_into_shell(path: str) -> None:
    document = read(path)
    steps = [one for one in mappings(document) if isinstance(one.get("run"), str)]
    assert not [one["run"] for one in steps if "${{" in one["run"]]
    assert steps or path.endswith("nightly.yml")


@pytest.mark.parametrize("path", ON_GITHUB)
def test_the_only_actions_are_githubs_own_and_pinned_to_a_major_version(path: str) -> None:
    used = [one["uses"] for one in mappings(read(path)) if isinstance(one.get("uses"), str)]
    assert not [one for one in used if not re.fullmatch(r"actions/[\w/-]+@v\d+|\./\.github/workflows/[\w-]+\.yml", one)]


def test_each_action_has_one_version() -> None:
    used = {one["uses"] for path in ON_GITHUB for one in mappings(read(path)) if "@" in str(one.get("uses", ""))}
    names = [one.partition("@")[0] for one in used]
    assert len(names) == len(set(names))


# --------------------------------------------------------------------------------------------------------- differences


def lines(path: str) -> dict[str, str]:
    """The shell of each step that has an id."""
    return {one["id"]: one["run"] for one in mappings(read(path)) if "run" in one and "id" in one}


def test_the_action_runs_the_lines_of_the_workflow() -> None:
    assert lines("action.yml") == lines(".github/workflows/nightly-reusable.yml")


def test_the_action_and_the_workflow_take_the_same_inputs() -> None:
    action = read("action.yml")["inputs"]
    workflow = read(".github/workflows/nightly-reusable.yml")[True]["workflow_call"]["inputs"]
    assert set(workflow) - set(action) == {"shards", "runs-on", "timeout-minutes"}
    assert {name: str(one["default"]) for name, one in action.items()} == {
        name: str(workflow[name]["default"]) for name in action
    }


def test_ci_runs_what_the_tests_of_this_project_run_on() -> None:
    job = read(".github/workflows/ci.yml")["jobs"]["check"]
    assert "3.11" in job["strategy"]["matrix"]["python"]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == ["make setup PYTHON=python", "make lint", "make test"]
    assert [line for line in (ROOT / ".ci/run").read_text().splitlines() if line.startswith("make")] == [
        f"{command} </dev/null" for command in commands[1:]
    ]


def test_nights_of_one_name_wait_for_each_other() -> None:
    workflow, own = (read(f".github/workflows/{name}.yml") for name in ("nightly-reusable", "nightly"))
    [whole] = re.findall(r"^```yaml\n(# \.github/[^`]*)^```", DOCUMENT.read_text(), re.MULTILINE)
    groups = [one["concurrency"] for one in (workflow, own, yaml.safe_load(whole))]
    assert not any(group.get("cancel-in-progress") for group in groups)
    assert "${{ inputs.name }}" in groups[0]["group"]
    assert groups[0]["group"].partition("/")[0] != groups[1]["group"]  # a workflow would wait for its caller


def test_the_document_names_every_input_and_every_file() -> None:
    text = DOCUMENT.read_text()
    inputs = read(".github/workflows/nightly-reusable.yml")[True]["workflow_call"]["inputs"]
    variables = [*read("docs/ci/gitlab-nightly.yml")["variables"]]
    parameters = re.findall(r"string\(name: '(\w+)'", JENKINS.read_text())
    assert not [name for name in [*inputs, *variables, *parameters] if f"`{name}`" not in text]
