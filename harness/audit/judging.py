"""Has the reference checker judge the run directory of a window."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from checkers import check
from checkers.registry import KINDS
from harness.checker import EvidenceTier, Outcome, RunVerdict, from_json
from harness.errors import SeawallError
from harness.history.run_directory import RunDirectory

_ENTRY = "import sys; from harness.entry import main; sys.exit(main())"
_LONGEST_S = 900.0
_LAST_WORDS = 300


class Judgement(NamedTuple):
    """What was found in a window.

    Attributes:
        outcome: of the checker.
        anomalies: by kind, how many.
        reasons: what is open, a sentence each.
        evidence: on which it rests; None: it was not judged.
        not_asked: the kinds of anomaly that this evidence cannot show, sorted.
    """

    outcome: Outcome
    anomalies: Mapping[str, int]
    reasons: tuple[str, ...]
    evidence: EvidenceTier | None = None
    not_asked: tuple[str, ...] = ()

    def doubted(self, doubts: Iterable[str]) -> Judgement:
        """The same when something else is not known: what would pass is inconclusive."""
        reasons = (*self.reasons, *doubts)
        passes = self.outcome is Outcome.PASS and reasons != self.reasons
        return self._replace(outcome=Outcome.INCONCLUSIVE if passes else self.outcome, reasons=reasons)


Judge = Callable[[Path], Judgement]
"""Judges a run directory, and writes its verdict."""


def judge_here(path: Path) -> Judgement:
    """Judge it in this process."""
    [verdict] = check([path], engine="reference")
    return _of(verdict)


def judge_beside(path: Path) -> Judgement:
    """Judge it in a process of its own, whose work delays no client and whose memory ends with it."""
    words = ["check", "--engine", "reference", "--quiet", str(path)]
    try:
        ran = subprocess.run(
            [sys.executable, "-P", "-c", _ENTRY, *words],
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
            check=False,
            start_new_session=True,  # a signal to the audit lets it finish
        )
        found = RunDirectory(path).read_verdict()
        if found is not None:
            return _of(from_json(found))
        why = ran.stderr.strip()[-_LAST_WORDS:] or f"it exited with {ran.returncode}"
    except subprocess.TimeoutExpired:
        why = f"it took longer than {_LONGEST_S:g} s"
    except (SeawallError, json.JSONDecodeError) as error:
        why = str(error)
    return Judgement(Outcome.INVALID, {}, (f"The window was not judged: {why}.",))


def _of(verdict: RunVerdict) -> Judgement:
    found = {kind: verdict.counts[kind] for kind in sorted(KINDS) if verdict.counts.get(kind)}
    found |= {one.kind: 1 for one in verdict.anomalies if one.kind not in found}
    return Judgement(verdict.outcome, found, tuple(verdict.reasons), verdict.evidence, tuple(verdict.not_asked))
