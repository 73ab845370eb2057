"""A stand-in for GitHub Actions, as far as this project's workflows and its action need one."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.ci.jobs import ROOT, Machine, copy

_SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
_EXPRESSION = re.compile(r"\$\{\{\s*([^}]*?)\s*\}\}")
_NOT_PLAYED = {"install"}
"""Steps, by their ids, that need a package index."""


class Actions:
    """Plays jobs one after the other.

    Attributes:
        caches: by key, oldest first; artifacts: by name; both are directories.
        results: of each job, ``success`` or ``failure``.
    """

    def __init__(self, machine: Machine, run: int = 1) -> None:
        self._machine, self._run = machine, run
        self.caches: dict[str, Path] = {}
        self.artifacts: dict[str, Path] = {}
        self.results: dict[str, str] = {}
        self._stored = 0

    def workflow(self, name: str, inputs: Mapping[str, object]) -> dict[str, str]:
        """Play a reusable workflow; its outputs."""
        document = read(f".github/workflows/{name}")
        declared = document[True]["workflow_call"]  # YAML takes `on` for a truth value
        context: dict[str, Any] = {"inputs": _given(declared["inputs"], inputs)}
        jobs: dict[str, Any] = {}
        for name_of_job, job in document["jobs"].items():
            needed = {one: jobs[one] for one in _list(job.get("needs", ()))}
            context |= {"needs": needed}
            if all(one["result"] == "success" for one in needed.values()) or job.get("if") == "always()":
                jobs[name_of_job] = self._job(name_of_job, job, context)
        self.results = {one: job["result"] for one, job in jobs.items()}
        return {key: str(value(one["value"], {"jobs": jobs})) for key, one in declared["outputs"].items()}

    def action(self, inputs: Mapping[str, object]) -> dict[str, str]:
        """Play this repository's action in a job of its own; its outputs."""
        document = read("action.yml")
        context: dict[str, Any] = {"inputs": _given(document["inputs"], inputs)}
        place = self._machine.job("action")
        result, steps = self._steps(document["runs"]["steps"], place, context)
        self.results = {"action": result}
        return {key: str(value(one["value"], {"steps": steps})) for key, one in document["outputs"].items()}

    def _job(self, name: str, job: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
        matrix = job.get("strategy", {}).get("matrix", {})
        results, outputs = [], {}
        for values in _product({key: value(one, context) for key, one in matrix.items()}):
            place = self._machine.job("-".join([name, *map(str, values.values())]))
            result, steps = self._steps(job["steps"], place, {**context, "matrix": values})
            results.append(result)
            outputs = {key: value(one, {**context, "steps": steps}) for key, one in job.get("outputs", {}).items()}
        return {"result": "success" if set(results) == {"success"} else "failure", "outputs": outputs}

    def _steps(self, steps: list[dict[str, Any]], place: Path, context: Mapping[str, Any]) -> tuple[str, Any]:
        ended: dict[str, Any] = {}
        result = "success"
        for step in steps:
            here = {**context, "steps": ended, "github": {"run_id": str(self._run), "run_attempt": "1"}}
            if step.get("id") in _NOT_PLAYED or not _is_due(step.get("if"), result, here):
                continue
            if "run" in step:
                code, outputs = self._shell(step, place, here)
                ended[step.get("id", "")] = {"outputs": outputs}
                result = result if code == 0 else "failure"
            else:
                self._use(step["uses"].partition("@")[0], value(step.get("with", {}), here), place)
        return result, ended

    def _shell(self, step: Mapping[str, Any], place: Path, context: Mapping[str, Any]) -> tuple[int, dict[str, str]]:
        told = self._machine.scratch / "outputs"
        told.write_text("")
        given = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(told),
            "GITHUB_STEP_SUMMARY": str(place / "step-summary.md"),
            "GITHUB_RUN_NUMBER": str(self._run),
            **{key: str(one) for key, one in value(step.get("env", {}), context).items()},
        }
        code = self._machine.run(step["run"], place, given, _SHELL)
        return code, dict(line.split("=", 1) for line in told.read_text().splitlines())

    def _use(self, action: str, given: Mapping[str, Any], place: Path) -> None:
        match action:
            case "actions/checkout" | "actions/setup-python" | "actions/setup-java":
                pass
            case "actions/cache/restore":
                found = [key for key in self.caches if key.startswith(given["restore-keys"])]
                if found:
                    copy([given["path"]], self.caches[found[-1]], place)
            case "actions/cache/save":
                self.caches[given["key"]] = self._store([given["path"]], place)
            case "actions/upload-artifact":
                # One directory becomes the root of the artifact; several are below it.
                paths = given["path"].split()
                if not any((place / one).exists() for one in paths):
                    return  # with a warning
                stored = self._store(paths, place)
                self.artifacts[given["name"]] = stored / paths[0] if len(paths) == 1 else stored
            case "actions/download-artifact":
                pattern = given.get("name") or given["pattern"].replace("*", "")
                for name, stored in self.artifacts.items():
                    if name == given.get("name") or ("pattern" in given and name.startswith(pattern)):
                        shutil.copytree(stored, place / given["path"], dirs_exist_ok=True)
            case _:
                raise AssertionError(f"{action} is not known here")

    def _store(self, names: list[str], place: Path) -> Path:
        """A copy; artifacts have no hidden files."""
        self._stored += 1
        stored = self._machine.scratch / "stored" / str(self._stored)
        stored.mkdir(parents=True)
        copy(names, place, stored)
        for hidden in stored.rglob(".*"):
            hidden.unlink()
        return stored


def read(path: str) -> dict[Any, Any]:
    """A document of this repository."""
    found = yaml.safe_load((ROOT / path).read_text())
    assert isinstance(found, dict)
    return found


def value(written: Any, context: Mapping[str, Any]) -> Any:
    """What is written, with the values of its expressions; a name that is not there is a ``KeyError``."""
    if isinstance(written, Mapping):
        return {key: value(one, context) for key, one in written.items()}
    if not isinstance(written, str):
        return written
    if whole := _EXPRESSION.fullmatch(written):
        return _evaluated(whole[1], context)
    return _EXPRESSION.sub(lambda found: str(_evaluated(found[1], context)), written)


def _evaluated(expression: str, context: Mapping[str, Any]) -> Any:
    if found := re.fullmatch(r"fromJSON\((.*)\)", expression):
        return json.loads(_evaluated(found[1], context))
    known: Any = context
    for name in expression.split("."):
        known = known[name]
    return known


def _is_due(condition: str | None, result: str, context: Mapping[str, Any]) -> bool:
    if condition == "always()":
        return True
    if found := re.fullmatch(r"([\w.-]+) != ''", condition or ""):
        return result == "success" and _evaluated(found[1], context) != ""
    assert condition is None
    return result == "success"


def _given(declared: Mapping[str, Mapping[str, Any]], inputs: Mapping[str, object]) -> dict[str, object]:
    assert not inputs.keys() - declared.keys()
    return {**{name: one["default"] for name, one in declared.items()}, **inputs}


def _list(written: Any) -> list[str]:
    return [written] if isinstance(written, str) else list(written)


def _product(matrix: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if not matrix:
        yield {}
    for name, values in matrix.items():
        yield from ({name: one} for one in values)
