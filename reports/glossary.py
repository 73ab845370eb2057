"""The meaning of each verdict, outcome and term of a report, in one sentence each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from checkers.registry import CONCLUSIONS, KINDS, PROMISES
from harness.checker import Outcome, Verdict

VERDICTS: Final[Mapping[Verdict, str]] = MappingProxyType(
    {
        Verdict.VIOLATION: "The configuration promises that this never happens.",
        Verdict.EXPECTED: "The scenario predicts this for the protocol generation it ran.",
        Verdict.DOCUMENTED: "The configuration gave it away: unclean election, retention, "
        "or the lossy failure of every in-sync replica.",
        Verdict.WEAK: "The acknowledgement was of acks 0 or 1, which promise less.",
        Verdict.INDETERMINATE: "The evidence does not suffice.",
    }
)

OUTCOMES: Final[Mapping[Outcome, str]] = MappingProxyType(
    {
        Outcome.PASS: "nothing that the configuration forbids was seen, and nothing was predicted",
        Outcome.AS_PREDICTED: "exactly the predicted anomalies were observed",
        Outcome.VIOLATION: "an anomaly was observed that nothing predicted or documented",
        Outcome.NOT_REPRODUCED: "a predicted anomaly did not happen",
        Outcome.INCONCLUSIVE: "the evidence does not suffice to decide",
        Outcome.INVALID: "a fault was not proven, or the history is incomplete",
    }
)

_REFERENCES: Final = re.compile(r" \([RT]\d+\w?(, [RT]\d+\w?)*\)")
"""The checkers' own numbers of rules."""

TERMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "acknowledged (ok)": "The broker acknowledged the record: it is written as durably as its acks ask for.",
        "info": "The client cannot know (a timeout, a broken connection). That the record exists, or not, is no loss.",
        "fail": "Proven never to have happened: refused before anything was appended.",
        "high watermark (hw)": "The offset below which every in-sync replica holds the log. Exclusive: hw 20 commits "
        "offsets 0 to 19. Each broker has its own, and a follower's lags behind its leader's.",
        "log end offset": "The offset that the next record will get. Exclusive.",
        "leader epoch": "Counts the changes of a partition's leader; every record batch carries the epoch it was "
        "appended in.",
        "ISR": "The in-sync replicas: those an acknowledgement with acks=all waits for, and that may be elected.",
        "truncation": "A replica cuts its log back to an earlier end, usually when it starts to follow a new leader.",
        "proven": "A probe saw that the fault took effect. A run with an unproven fault proves nothing.",
    }
)


def meaning(kind: str) -> str:
    """What a kind of anomaly means."""
    known = KINDS.get(kind)
    return known.meaning if known else "A kind of a checker that this report does not know; see that checker."


def promise(kind: str) -> str:
    """What is promised that an anomaly of the kind breaks: the first sentence of its checker."""
    rules: Sequence[Any] = (*PROMISES, *CONCLUSIONS)
    found = next((rule for rule in rules if any(one.name == kind for one in rule.KINDS)), None)
    first = (getattr(found, "__doc__", None) or "").strip().partition("\n\n")[0]
    return _REFERENCES.sub("", " ".join(first.split()).replace("``", ""))


def is_gone(kind: str) -> bool:
    """Whether an anomaly of that kind shows that a delivered or acknowledged record is gone."""
    return kind in KINDS and KINDS[kind].shows_loss
