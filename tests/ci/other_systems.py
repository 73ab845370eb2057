"""Stand-ins for GitLab and Jenkins, as far as this project's templates need them."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from tests.ci.jobs import ROOT, Machine, copy

GITLAB = ROOT / "docs/ci/gitlab-nightly.yml"
JENKINS = ROOT / "docs/ci/Jenkinsfile"

_BLOCK = re.compile(r"sh '''\n(.*?)'''", re.DOTALL)


class GitLab:
    """Plays a pipeline.

    Attributes:
        artifacts: the directory of each job's.
        failed: the names of jobs that are red.
        cache: what is kept.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.artifacts: dict[str, list[tuple[Path, list[str]]]] = {}
        self.failed: list[str] = []
        self.cache = machine.scratch / "cache"

    def pipeline(self, number: int = 1) -> None:
        """Play all jobs in their order."""
        document = yaml.safe_load(GITLAB.read_text())
        for name, job in document.items():
            if name.startswith("seawall:"):
                parts = job.get("parallel", 1)
                for index in range(1, parts + 1):
                    variables = {
                        **{key: str(one) for key, one in document["variables"].items()},
                        "CI_PIPELINE_CREATED_AT": "2026-03-04T23:59:58Z",
                        "CI_PIPELINE_IID": str(number),
                        "CI_NODE_TOTAL": str(parts),
                        **({"CI_NODE_INDEX": str(index)} if parts > 1 else {}),
                    }
                    self._play(name, f"{number}-{name}-{index}", job, variables)

    def _play(self, name: str, directory: str, job: dict[str, Any], variables: dict[str, str]) -> None:
        if self.failed and job["rules"][0].get("when") != "always" and not name.endswith(":shard"):
            return
        place = self._machine.job(directory)
        for needed in job.get("needs", ()):
            for source, paths in self.artifacts.get(needed, ()):
                copy(paths, source, place)
        cache = job.get("cache", {"policy": ""})
        if "pull" in cache["policy"]:
            copy(cache["paths"], self.cache, place)
        # As runners do: all lines in one shell that ends with the first failure.
        code = self._machine.run("\n".join(job["script"]), place, variables, ("sh", "-e"))
        if code != 0:
            self.failed.append(name)
        if "push" in cache["policy"] and (code == 0 or cache.get("when") == "always"):
            self.cache.mkdir(exist_ok=True)
            copy(cache["paths"], place, self.cache)
        if code == 0 or job["artifacts"].get("when") == "always":
            self.artifacts.setdefault(name, []).append((place, job["artifacts"]["paths"]))


class Jenkins:
    """Plays the blocks of shell of the Jenkinsfile, each of which must be for one of its stages.

    Attributes:
        codes: how each stage ended.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        text = JENKINS.read_text()
        blocks = [dedent(block).replace("\\\\", "\\") for block in _BLOCK.findall(text)]
        [self._begin] = [block for block in blocks if "now.yaml" in block]
        [self._merge] = [block for block in blocks if "nightly merge" in block]
        [self._shard] = [block for block in blocks if "--shard" in block]
        defaults = dict(re.findall(r"string\(name: '(\w+)', defaultValue: '([^']*)'", text))
        [date] = re.findall(r"sh\(script: '([^']*)', returnStdout: true\)", text)
        self._environment = {**defaults, "NIGHT": "2026-03-04.9"}
        self.codes = {"night": self._in(self._machine.job("date"), date)}

    def build(self) -> Path:
        """Play all stages; the directory of the merge."""
        begin, merge = self._machine.job("begin"), self._machine.job("merge")
        self.codes["begin"] = self._in(begin, self._begin)
        copy(["seawall-kept"], begin, merge)
        for number in ("1", "2"):
            place = self._machine.job(f"shard-{number}")
            copy(["seawall-kept"], begin, place)
            self.codes[f"shard {number}"] = self._in(place, self._shard, SHARD=number)
            copy(["shards"], place, merge)
        self.codes["merge"] = self._in(merge, self._merge)
        return merge

    def _in(self, place: Path, lines: str, **more: str) -> int:
        link = place / ".seawall" / "bin"
        link.parent.mkdir(exist_ok=True)
        if not link.exists():
            link.symlink_to(self._machine.bin)
        return self._machine.run(lines, place, {**self._environment, **more}, ("sh", "-xe"))
