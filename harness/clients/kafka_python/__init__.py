"""kafka-python, a client in Python alone, as a client library."""
