"""What clients report of commits, compared with the frames of a wire tap; see :mod:`checkers.attribution`."""

from __future__ import annotations

from checkers.attribution import Ground, unless_blind
from checkers.frames import Frames, is_between, or_none, place_of
from checkers.row import Row, where
from harness.findings import Finding


def committed(frames: Frames, finding: Finding, row: Row | None) -> Ground:
    """That the coordinator stored a commit, as its client's row says."""
    if row is None:
        return Ground(None, "no client reports such a commit")
    stored = [
        frame
        for api in ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT")
        for frame in frames.of[api, place_of(finding)]
        if frame["group"] == row["group"] and frame["error"] == 0 and frame["offset"] == row["offset"]
        and is_between(frame, None, row["time_ns"])
    ]  # fmt: skip
    of = [frame for frame in stored if row["generation"] is None or frame["generation"] == row["generation"]]
    if of:
        named = "" if row["generation"] is None else f" of generation {row['generation']}"
        return Ground(True, f"the coordinator acknowledged the commit of offset {row['offset']}{named}", of[-2:])
    if stored:
        words = f"the commit of offset {row['offset']} was of generation {stored[-1]['generation']}"
        return Ground(False, f"{words}, and not of {row['generation']}", stored[-2:])
    words = f"no coordinator acknowledged a commit of offset {row['offset']} by group {row['group']!r}"
    return unless_blind(frames, "OFFSET_COMMIT", Ground(False, words))


def returned(frames: Frames, finding: Finding) -> Ground:
    """That the coordinator returned the committed offset of the finding's row."""
    row = frames.rows.get(-1 if finding.row is None else finding.row)
    if row is None:
        return Ground(None, "the row is not known")
    asked = [
        frame
        for frame in frames.of["OFFSET_FETCH", place_of(finding)]
        if frame["group"] == row["group"] and is_between(frame, None, row["time_ns"])
    ]
    told = [frame for frame in asked if frame["error"] == 0 and frame["offset"] == row["offset"]]
    if told:
        return Ground(True, f"the coordinator returned {or_none(row['offset'])}", told[-1:])
    words = f"no coordinator returned {or_none(row['offset'])} to group {row['group']!r}"
    return unless_blind(frames, "OFFSET_FETCH", Ground(False, words, asked[-1:]))


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
