"""Which modules are mutated: the replication core, and the broker's storage, fetch, produce and controller code."""

from __future__ import annotations

_REPLICATION = (
    "cluster_state", "controller", "deletions", "elections", "epochs", "following", "isr",
    "isr_proposals", "leadership", "log_state", "offline_replicas", "producers", "replica", "storage",
    "topic_administration", "topic_configs", "topics",
)  # fmt: skip
_BROKER = (
    "checkpoints", "controller_link", "controller_node", "controller_requests", "controller_topics",
    "delayed", "deletion",
    "describe_log_dirs", "fetch", "fetcher", "log_directories", "log_directory", "newest_sessions", "partition",
    "produce", "producer_ids", "purgatory", "pusher", "segment", "segments",
)  # fmt: skip

MODULES = (
    *(f"harness/replication/{name}.py" for name in _REPLICATION),
    *(f"harness/broker/{name}.py" for name in _BROKER),
)
"""Left out: the declarations of messages, the knobs, the designed bugs, assertions, and what virtual time replaces:
``harness/broker/files.py``, and ``ledger.py``, the harness's own account of what a power loss takes from a disk."""
