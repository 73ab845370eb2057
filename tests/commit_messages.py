"""Checks the messages of the project's commits; ``make lint`` runs it on every commit since :data:`FIRST_UNCHECKED`.

A subject is ``part: do something``, in the imperative, without a full stop, of at most 72 characters; after an empty
line a body says why. So it is for merges, but for those that a forge makes to test a proposal.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIRST_UNCHECKED = "a4c1ceae8bd1050e5528ad3852391a22d19dfff7"
"""The last commit from before the check; it and its ancestors are not checked."""
FIRST_UNCHECKED_MERGE = "01339b9b3fc2002bced44937152a6b7e1e835bac"
"""The same for merges, which were left out at first."""
LONGEST_SUBJECT = 72
"""In characters."""

_SUBJECT = re.compile(r"(?P<part>[a-z0-9_. /-]+): (?P<action>\S.*)")
_NO_VERB = re.compile(
    r"(?:an?|the|what|who|how|it|its|every|each|all|no|two|three|four|\w+(?:ed|ing|[^s]s))\b", re.IGNORECASE
)
"""A first word that cannot be an imperative; ``pass`` and ``discuss`` can."""
_VERBS = frozenset({"embed", "exceed", "feed", "focus", "need", "proceed", "seed", "shed", "speed", "bring", "string"})
"""Imperatives that look like another form of a verb."""


_MADE_BY_A_FORGE = re.compile(r"Merge [0-9a-f]{40} into [0-9a-f]{40}")


def complaints(message: str) -> list[str]:
    """What is wrong with the message of a commit, a sentence each; nothing if it is as it should be."""
    subject, _, rest = message.strip().partition("\n")
    if _MADE_BY_A_FORGE.fullmatch(subject):
        return []
    return [*_about_subject(subject), *_about_body(rest)]


def _about_subject(subject: str) -> Iterator[str]:
    if len(subject) > LONGEST_SUBJECT:
        yield f"The subject has {len(subject)} characters, {LONGEST_SUBJECT} are the most."
    match = _SUBJECT.fullmatch(subject)
    if match is None:
        yield "The subject does not begin with the part that is changed, in small letters, and a colon."
        return
    first = match["action"].split()[0]
    if first.lower() not in _VERBS and _NO_VERB.fullmatch(first):
        yield f"The subject is not in the imperative: it begins with {first!r}."
    if subject.endswith("."):
        yield "The subject ends with a full stop."


def _about_body(rest: str) -> Iterator[str]:
    if not rest.strip():
        yield "A body that says why is missing."
    elif not rest.startswith("\n"):
        yield "An empty line between subject and body is missing."


def main(arguments: Sequence[str] = ()) -> int:
    """Check the commits after ``arguments[0]``, or those since the check exists; print what is wrong.

    Returns:
        The exit status: 1 if a message is not as it should be.
    """
    since = arguments[0] if arguments else FIRST_UNCHECKED
    if _git("cat-file", "-e", f"{since}^{{commit}}") is None:
        sys.stdout.write(f"Commit messages are not checked: this is no clone that has commit {since[:12]}.\n")
        return 0
    merges_since = arguments[0] if arguments else FIRST_UNCHECKED_MERGE
    wrong = 0
    for name, message in [*_messages("--no-merges", since), *_messages("--merges", merges_since)]:
        for complaint in complaints(message):
            sys.stdout.write(f"commit {name}, {message.splitlines()[0]!r}: {complaint}\n")
            wrong += 1
    return int(wrong > 0)


def _messages(which: str, since: str) -> Iterator[tuple[str, str]]:
    """The abbreviated hash and the message of each commit after ``since`` that is a merge, or is none."""
    log = _git("log", which, "--format=%h%x01%B%x00", f"{since}..HEAD") or ""
    for entry in filter(str.strip, log.split("\0")):
        name, _, message = entry.strip().partition("\x01")
        yield name, message


def _git(*words: str) -> str | None:
    """What git prints; None if it fails."""
    done = subprocess.run(("git", "-C", str(ROOT), *words), capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
