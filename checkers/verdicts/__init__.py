"""From findings to the verdict: what excuses a finding, how grave it is, which story it tells, and ``verdict.json``."""
