"""Whose an anomaly is, the brokers' or the client's: what clients report against the frames of a wire tap."""
