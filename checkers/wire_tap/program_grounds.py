"""Compares what a user's program has said, and put out, with the requests and responses that a wire tap captured.

The program's clients are those whose client ids are none of seawall's. What a record of an output topic holds is in its
bytes, which are not recorded, and brokers may have lost it; what a program prints, writes or posts, no broker has seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkers.views.frames import Frames, identity, place_of
from checkers.views.row import Row
from checkers.wire_tap.attribution import Ground, unless_blind
from checkers.wire_tap.commit_grounds import COMMITS
from harness.findings import Finding

_OWN = "seawall-"
UNKNOWN_OUTPUT = Ground(None, "what a record of the program's output holds is in bytes that are not recorded")


def made_up_commit(frames: Frames, finding: Finding, group: str) -> Ground | None:
    """That the coordinator returned an offset behind the finding's without an acknowledged commit; None: it did not.

    A commit that it has refused is not its group's.
    """
    commits = [
        frame for api in COMMITS for frame in _behind(frames, api, finding, group) if frame["error"] in (0, None)
    ]
    begun_ns = min((frame["request_ns"] for frame in commits), default=None)
    told = [
        frame
        for frame in _behind(frames, "OFFSET_FETCH", finding, group)
        if frame["error"] == 0 and frame["response_ns"] is not None
        and (begun_ns is None or frame["response_ns"] < begun_ns)
    ]  # fmt: skip
    if not told:
        return None
    given = f"the coordinator returned offset {told[0]['offset']} to group {group!r}"
    words = f"{given}, and had acknowledged no commit of that"
    return unless_blind(frames, Ground(True, words, told[:1]), *COMMITS)


def _behind(frames: Frames, api: str, finding: Finding, group: str) -> Sequence[Row]:
    """The frames of the group that name an offset behind the finding's record."""
    several = (frame for frame in frames.of[api, place_of(finding)] if frame["group"] == group)
    return [frame for frame in several if frame["offset"] is not None and frame["offset"] > (finding.offset or 0)]


def withheld_from_program(frames: Frames, finding: Finding) -> Ground:
    """That no broker sent a program the finding's record, which is not in its output."""
    offset, sent = finding.offset or 0, _sent(frames, finding)
    passed = [
        frame
        for frame in frames.of["FETCH", place_of(finding)]
        if _is_program(frame) and frame["error"] == 0 and None not in (frame["offset"], frame["base_offset"])
        and frame["offset"] <= offset < frame["base_offset"]
        and identity(frame) not in {identity(one) for one in sent}
    ]  # fmt: skip
    if sent and passed:
        return Ground(None, f"a broker sent the program offset {offset}, and once left it out", [*sent, *passed])
    if passed:
        words = f"a broker was asked for offset {passed[0]['offset']} and sent what comes after offset {offset}"
        return unless_blind(frames, Ground(True, words, passed[:1]), "FETCH")
    known = [frame for frame in sent if frames.value_in(finding, frame, offset) == finding.value]
    given = [frame for frame in known if not frame["aborted"]]
    if given and frames.prints:
        words = f"a broker sent {given[0]['client_id']!r} value {finding.value}, and the program never put it out"
        return Ground(False, words, given)
    if given:
        return UNKNOWN_OUTPUT._replace(frames=given)
    return Ground(None, f"the frames do not show that the program was sent value {finding.value}", sent)


def given_again(frames: Frames, finding: Finding) -> Ground:
    """That a broker sent a program the finding's record twice, which is twice in its output."""
    sent = _sent(frames, finding)
    unasked = [frame for frame in sent if frame["offset"] is not None and frame["end_offset"] <= frame["offset"]]
    if unasked and len(sent) > 1:
        return Ground(True, f"a broker sent the program offset {finding.offset} again without being asked", unasked)
    if not frames.prints:
        return UNKNOWN_OUTPUT
    if len(frames.batches_of(place_of(finding), finding.value)) > 1:
        return Ground(None, f"value {finding.value} was sent to the input more than once, which may have had it twice")
    if len(sent) == 1:
        words = f"a broker sent the program offset {finding.offset} once, and the program put it out twice"
        return unless_blind(frames, Ground(False, words, sent), "FETCH")
    return Ground(None, f"the frames do not show why the program asked for offset {finding.offset} again", sent)


def _sent(frames: Frames, finding: Finding) -> Sequence[Row]:
    if finding.offset is None:
        return ()
    return [frame for frame in frames.covering("FETCH", place_of(finding), finding.offset) if _is_program(frame)]


def _is_program(frame: Row) -> bool:
    return not (frame["client_id"] or "").startswith(_OWN)
