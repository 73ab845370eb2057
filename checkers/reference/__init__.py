"""The reference engine: it answers every question about a run in plain Python, over lists of rows."""
