"""A run that is judged on a cluster, and what is expected of that.

As a program (``python -m tests.spark_analysis.submitted check ...``) it is ``seawall`` to which every run is large.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from checkers import check
from harness.cli import main
from tests.checkers.story import Story
from tests.spark_analysis.differential import tiny_blocks

_ROOT = Path(__file__).parents[2]


def lossy(path: Path) -> Path:
    """A run in which acknowledged writes are lost."""
    story = Story(path.name)
    for _ in range(6):
        story.send()
    story.poll(5, range(6))
    story.cut(1, 3)
    story.elect(1)
    return story.finish().write(path)


def submit(master: str, uri: str, *conf: str, large: bool = False, **environment: str) -> subprocess.Popen[str]:
    """``seawall check`` of the run at ``uri``; ``conf`` are settings of Spark's, as ``name=value``.

    ``large``: it is judged as a large run.
    """
    seawall = [str(Path(sys.executable).with_name("seawall"))]
    words = " ".join(f"--conf {one}" for one in ("spark.executor.memory=512m", *conf))
    wanted = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_SUBMIT_ARGS": f"{words} pyspark-shell"}
    return subprocess.Popen(
        [*([sys.executable, "-m", __name__] if large else seawall), "check", "--master", master, uri],
        cwd=_ROOT,
        env={**os.environ, **wanted, **environment},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def said(path: Path) -> Any:
    """The verdict beside a run."""
    return unsealed((path / "verdict.json").read_text())


def unsealed(verdict: str) -> Any:
    """A verdict without the digests that tie it to its run: one behind a URI has none."""
    return {name: value for name, value in json.loads(verdict).items() if name not in ("inputs", "digest")}


def expected(path: Path) -> Any:
    """What the reference says."""
    check([path], engine="reference")
    document = said(path)
    (path / "verdict.json").unlink()
    return document | {"engine": "spark"}


if __name__ == "__main__":
    with tiny_blocks():
        sys.exit(main(sys.argv[1:]))
