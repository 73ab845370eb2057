"""The same verdict from YARN's containers, of a run that lies in HDFS."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ExitCode
from tests.spark_analysis.mini_hadoop import SPARKS, mini_hadoop
from tests.spark_analysis.submitted import expected, lossy, submit, unsealed


@pytest.mark.nightly("starts HDFS and YARN")
def test_yarn_judges_a_run_in_hdfs(tmp_path: Path) -> None:
    path = lossy(tmp_path / "lossy")
    wanted = expected(path)
    with mini_hadoop(tmp_path) as hadoop:
        hadoop.shell("-mkdir", "/runs")
        hadoop.shell("-put", str(path), "/runs/")
        process = submit(
            "yarn", "hdfs:///runs/lossy", f"spark.yarn.jars=local:{SPARKS}/*", HADOOP_CONF_DIR=str(hadoop.conf)
        )
        output, _ = process.communicate()
        assert process.returncode == ExitCode.VIOLATION, output
        assert unsealed(hadoop.shell("-cat", "/runs/lossy/verdict.json")) == wanted
        assert ".scratch-" not in hadoop.shell("-ls", "/runs/lossy")
