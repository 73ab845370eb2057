"""For testing faults, workloads and scenarios of your own."""
