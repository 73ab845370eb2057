"""The invariants of replication, which the witness checks during a simulated run: one class for each."""
