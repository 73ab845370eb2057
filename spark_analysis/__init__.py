"""What Spark is asked about histories: one question per module, DataFrame -> DataFrame, many runs in one job.

Nothing is imported here, so that who only wants :mod:`harness.findings` does not load Spark.
"""
