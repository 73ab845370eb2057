"""What the pytest plugin does once a test uses a fixture of it: the cluster, the recorded clients, the verdict."""
