"""What the rules read: one run's tables as rows, and what they say of replicas, leaders, deletions and clients."""
