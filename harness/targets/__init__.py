"""Systems under test behind ``harness.target.Target``."""
