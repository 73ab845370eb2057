"""The target that is a running cluster of which seawall knows addresses, and nothing else."""
