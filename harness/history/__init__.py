"""The evidence of a run: the schema of its tables, the recorder of the client history, and the run directory."""
