from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_analysis import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    yield session.session("local[2]")
    session.stop()
