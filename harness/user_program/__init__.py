"""A user's own program, as processes that a run starts, restarts, kills and ends, and what they put out."""
