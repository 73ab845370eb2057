"""Compares the commits that clients report with the requests and responses that a wire tap captured."""

from __future__ import annotations

from checkers.views.frames import Frames, is_between, or_none, place_of
from checkers.views.row import Row, where
from checkers.wire_tap.attribution import Ground, unless_blind
from harness.findings import Finding

COMMITS = ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT")


def committed(frames: Frames, finding: Finding, row: Row | None) -> Ground:
    """That the coordinator stored a commit, as its client's row says."""
    if row is None:
        return Ground(None, "no client reports such a commit")
    stored = [
        frame
        for api in COMMITS
        for frame in frames.of[api, place_of(finding)]
        if frame["group"] == row["group"] and frame["error"] == 0 and frame["offset"] == row["offset"]
        and is_between(frame, _begun_ns(frames, row), row["time_ns"])
    ]  # fmt: skip
    of = [frame for frame in stored if row["generation"] is None or frame["generation"] == row["generation"]]
    if of:
        named = "" if row["generation"] is None else f" of generation {row['generation']}"
        return Ground(True, f"the coordinator acknowledged the commit of offset {row['offset']}{named}", of[-2:])
    if stored:
        words = f"the commit of offset {row['offset']} was of generation {stored[-1]['generation']}"
        words += f", and not of {row['generation']}"
    else:
        words = f"no coordinator acknowledged a commit of offset {row['offset']} by group {row['group']!r}"
        words += "" if _begun_ns(frames, row) is None else " while it was under way"
    return unless_blind(frames, Ground(False, words, stored[-2:]), *COMMITS)


def returned(frames: Frames, finding: Finding) -> Ground:
    """That the coordinator returned the committed offset of the finding's row while its client asked for it.

    An answer to another client of the group will do, for it shows the same of the coordinator.
    """
    row = row_of(frames, finding)
    if row is None:
        return Ground(None, "the row is not known")
    asked = [
        frame
        for frame in frames.of["OFFSET_FETCH", place_of(finding)]
        if frame["group"] == row["group"] and is_between(frame, None, row["time_ns"])
    ]
    told = [frame for frame in asked if frame["error"] == 0 and frame["offset"] == row["offset"]]
    begun_ns = _begun_ns(frames, row)
    current = [frame for frame in told if begun_ns is None or frame["response_ns"] >= begun_ns]
    offset = or_none(row["offset"])
    if current:
        return Ground(True, f"the coordinator returned {offset}", current[-1:])
    if told:
        words = f"the coordinator last returned {offset} to group {row['group']!r} before the client asked"
    else:
        words = f"no coordinator returned {offset} to group {row['group']!r}"
    return unless_blind(frames, Ground(False, words, [*told[-1:], *asked[-1:]]), "OFFSET_FETCH")


def _begun_ns(frames: Frames, row: Row) -> int | None:
    """When the operation of a commit, or of a question about one, began; None: it is not known."""
    return frames.asked.get((row["op"], where(row)))


def commit_before(frames: Frames, finding: Finding) -> Row | None:
    """The last acknowledged commit of the finding's other offset before its row."""
    group = frames.rows.get(finding.row or 0, {}).get("group")
    known = [
        row
        for index, row in frames.rows.items()
        if row["f"] == "commit" and row["type"] == "ok" and row["offset"] == finding.other_offset
        and where(row) == place_of(finding) and row["group"] == group and index < (finding.row or 0)
    ]  # fmt: skip
    return max(known, key=lambda row: int(row["index"]), default=None)


def row_of(frames: Frames, finding: Finding) -> Row | None:
    """The history's row that the finding names."""
    return frames.rows.get(-1 if finding.row is None else finding.row)
