"""Whether an anomaly is the brokers' or the client's, by what a wire tap has recorded.

An anomaly contradicts what clients report: that a broker acknowledged a record at an offset, that it sent one, that it
stored or returned a committed offset. Each rule about clients names the reports that its finding rests on, and this
module compares each with the frames:

* ``client``: a report has no frame behind it, or a frame says otherwise. The client reports what no broker has said.
* ``broker``: every report has a frame behind it. The client reports what it was answered, and that is what is wrong.
* ``undecided``: neither is shown, as where a frame was not understood, or there are no responses (acks=0).

A frame has no record in it, so a batch is recognized by its checksum, which a leader does not change: the same in a
Produce request, in the replicas' logs, whose records are known, and in a Fetch response. Where a batch is on no disk
any more, and for topics with LogAppendTime, whose leader does change it, the offset and the times must do.

A response is in the table before it leaves its node, and times are of one clock: a report that is older than the first
frame that could be behind it has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from checkers.views.frames import Frames, cited
from checkers.views.row import Row
from harness.checker import Attribution, Side


class Ground(NamedTuple):
    """One report that a finding rests on, compared with the frames.

    Attributes:
        holds: True: a frame is behind it; False: none is, or one says otherwise; None: not known.
        says: what the frames show, a clause; empty: no client reports it.
        frames: those that show it, of the table ``wire``.
    """

    holds: bool | None
    says: str
    frames: Sequence[Row] = ()


def attributed(*grounds: Ground) -> Attribution:
    """Whose the finding is that rests on these reports, all of which are wrong if one is."""
    refuted = [one for one in grounds if one.holds is False]
    unknown = [one for one in grounds if one.holds is None]
    side = Side.CLIENT if refuted else Side.UNDECIDED if unknown or not grounds else Side.BROKER
    telling = refuted or unknown or grounds
    frames = [row for one in (*telling, *(one for one in grounds if one not in telling)) for row in one.frames]
    says = "; ".join(dict.fromkeys(one.says for one in telling if one.says))
    return Attribution(side, f"{says[:1].upper()}{says[1:]}.", tuple(cited(frames)))


def gravest(grounds: Sequence[Ground]) -> Ground | None:
    """One that is refuted, else one that is not known, else one that holds; None: there are none."""
    return min(grounds, key=lambda one: (False, None, True).index(one.holds), default=None)


def unless_blind(frames: Frames, ground: Ground, *apis: str) -> Ground:
    """``ground``, which rests on the lack of a frame, unless one of these APIs was not understood."""
    if frames.blind & {*apis, ""}:
        return Ground(None, f"{ground.says}, but a frame was not understood", ground.frames)
    return ground


UNKNOWN_ASSIGNMENT = Ground(None, "what the coordinator assigned is in bytes that are not recorded")
UNKNOWN_END = Ground(None, "the frames do not show how the transaction ended")
UNKNOWN_MEMBER = Ground(None, "which member of the group it was is not known")
