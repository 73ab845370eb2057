"""The targets: implementations of ``harness.target.Target``."""
