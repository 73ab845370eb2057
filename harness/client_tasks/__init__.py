"""Client coroutines over the port of clients: they send, poll and commit, and record it in the history."""
