"""The whole built-in cluster in virtual time: unmodified brokers on a seeded network and in-memory disks."""
