"""What replication promises, as invariants that the witness of a simulated run watches: one small class for each."""
