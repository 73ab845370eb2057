"""What clients do one step after the other, over the port of clients, and how each operation enters the history."""
