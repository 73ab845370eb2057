"""Test doubles for your own faults, workloads and scenarios."""
