"""Leadership hints that produce and fetch responses share (KIP-595, KIP-951)."""

from __future__ import annotations

from harness.wire.declaration import Struct, int32, nullable_string, string, struct


@struct
class LeaderIdAndEpoch(Struct):
    """The present leader of a partition; -1 when it is unknown."""

    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


@struct
class NodeEndpoint(Struct):
    """The address of a leader."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = nullable_string()
