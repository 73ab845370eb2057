from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_analysis import session
from tests.spark_analysis.one_job import OneJob


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    yield session.session("local[2]")
    session.stop()


@pytest.fixture(scope="session")
def one_job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> OneJob:
    """The runs of every collected module that writes some in a function ``write_runs``, judged by Spark in one job."""
    modules = dict.fromkeys(
        sys.modules[item.function.__module__] for item in request.session.items if isinstance(item, pytest.Function)
    )
    return OneJob([module for module in modules if hasattr(module, "write_runs")], tmp_path_factory, spark)
