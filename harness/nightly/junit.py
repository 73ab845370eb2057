"""Writes ``junit.xml``, which Jenkins, GitLab and others read: every cell is a suite with one test case.

The format is that of Jenkins's xUnit plugin (``junit-10.xsd``), whose test cases have no properties: those of a cell,
its seed, versions and digests, are therefore of its suite. Names of test cases stay the same from night to night,
so that a CI system can follow them; a seed is part of the name only if it is one of the bank's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from harness.nightly import prose
from harness.nightly.conclusion import ERRORS, FAILURES, SKIPS, gravity
from harness.nightly.result import CellResult
from harness.nightly.standing import Key, Standing, key_of
from harness.scratch import unfinished

NAME = "junit.xml"

MOST_MESSAGE = 500
"""Characters of the message of a failure: CI systems show it in one line."""

MOST_OUTPUT = 16_384
"""Characters of the output of a cell."""

MOST_OUTPUTS = 8_000_000
"""Characters of all outputs together, the gravest cells first. GitLab reads 30 MB of reports of a pipeline."""

_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 does not allow, not even escaped (``Char``, section 2.2)."""

Standings = Mapping[Key, Standing]


def write(
    path: Path, results: Sequence[CellResult], standings: Standings | None = None, missing: Sequence[str] = ()
) -> None:
    """Replace ``junit.xml`` at once; ``standings`` says what each finding is tonight.

    Each of ``missing``, a sentence about a shard of the night that is not there, is an error.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    tree = ET.ElementTree(document(results, standings, missing))
    ET.indent(tree, " ")
    with unfinished(path) as temporary:
        tree.write(temporary, encoding="utf-8", xml_declaration=True)


def document(
    results: Sequence[CellResult], standings: Standings | None = None, missing: Sequence[str] = ()
) -> ET.Element:
    """The root element; arguments as of :func:`write`."""
    ordered = sorted(results, key=gravity)
    night = ordered[0].night if ordered else ""
    root = ET.Element("testsuites", name=_clean(f"seawall nightly {night}".rstrip()), time=_time(results))
    _count(root, ordered, len(missing), with_skips=False)
    for sentence in missing:
        _add_missing(root, sentence)
    left = MOST_OUTPUTS
    for result, name in zip(ordered, _names(ordered), strict=True):
        left -= _add(root, result, name, (standings or {}).get(key_of(result) or ("", "")), left)
    return root


def _names(results: Sequence[CellResult]) -> Iterator[str]:
    """The names of their test cases; cells that differ in the seed alone are numbered."""
    known: Counter[tuple[str, str]] = Counter()
    for result in results:
        name = f"{prose.what_ran(result)}, seed {result.seed} of the bank" if result.bank else prose.what_ran(result)
        key = (_classname(result), name)
        known[key] += 1
        yield name if known[key] == 1 else f"{name} [{known[key]}]"


def _classname(result: CellResult) -> str:
    """What CI systems group by; a dot would begin a package."""
    return "seawall." + prose.system(result).replace(".", "_").replace(" ", "-")


def _add(root: ET.Element, result: CellResult, name: str, standing: Standing | None, left: int) -> int:
    """Add a cell; return the number of characters of its output, which are at most ``left``."""
    classname = _clean(_classname(result))
    suite = ET.SubElement(root, "testsuite", name=_clean(f"{classname}.{name}"), time=_time([result]))
    _count(suite, [result], with_skips=True)
    if result.started:
        suite.set("timestamp", _clean(result.started))
    properties = ET.SubElement(suite, "properties")
    for key, value in _properties(result, standing):
        ET.SubElement(properties, "property", name=_clean(key), value=_clean(value))
    case = ET.SubElement(suite, "testcase", classname=classname, name=_clean(name), time=_time([result]))
    if (tag := _tag(result)) is not None:
        message = prose.shortened(prose.headline(result), MOST_MESSAGE)
        element = ET.SubElement(case, tag, type=result.outcome.value, message=_clean(message))
        if tag != "skipped":
            element.text = _clean(prose.shortened("\n".join(result.story) or result.reason or message, MOST_OUTPUT))
    output = _clean(_output(result, standing, min(MOST_OUTPUT, left)))
    if output:
        ET.SubElement(case, "system-out").text = output
    return len(output)


def _add_missing(root: ET.Element, sentence: str) -> None:
    name = sentence.partition(" of ")[0]
    suite = ET.SubElement(root, "testsuite", name=f"seawall.{name}", time=_time([]))
    _count(suite, [], 1, with_skips=True)
    ET.SubElement(ET.SubElement(suite, "properties"), "property", name="outcome", value="missing")
    case = ET.SubElement(suite, "testcase", classname="seawall", name=name, time=_time([]))
    ET.SubElement(case, "error", type="missing", message=sentence).text = sentence


def _tag(result: CellResult) -> str | None:
    for tag, outcomes in (("failure", FAILURES), ("error", ERRORS), ("skipped", SKIPS)):
        if result.outcome in outcomes:
            return tag
    return None


def _count(element: ET.Element, results: Sequence[CellResult], missing: int = 0, *, with_skips: bool) -> None:
    tags = Counter(map(_tag, results))
    counts = {"tests": len(results) + missing, "failures": tags["failure"], "errors": tags["error"] + missing}
    for name, number in (counts | ({"skipped": tags["skipped"]} if with_skips else {})).items():
        element.set(name, str(number))


def _time(results: Sequence[CellResult]) -> str:
    return f"{sum(one.seconds for one in results):.3f}"


def _properties(result: CellResult, standing: Standing | None) -> Iterator[tuple[str, str]]:
    usual = {
        "night": result.night,
        "cell": result.cell,
        "seed": result.seed,
        "outcome": result.outcome.value,
        "exit_code": result.exit_code,
        "standing": standing and standing.value,
        "signature": result.signature,
        "plan": result.plan,
        "shard": result.shard,
        "bank": "true" if result.bank else None,
        "tries": len(result.tries) if len(result.tries) > 1 else None,
        "run": result.run,
        "report": result.report,
        "evidence": result.evidence,
        "not_asked": ", ".join(result.not_asked) or None,
    }
    yield from ((key, str(value)) for key, value in usual.items() if value is not None)
    yield from ((f"version.{name}", version) for name, version in sorted(result.versions.items()))


def _output(result: CellResult, standing: Standing | None, most: int) -> str:
    """The story, and how to run it again, which is never cut off unless there is no room at all."""
    last = [f"report: {result.report}"] * bool(result.report) + [f"reproduce: {result.reproduce}"]
    end = "\n".join(last)
    tries = [f"try {number}: {one.outcome}, {one.seconds:.1f} s" for number, one in enumerate(result.tries, 1)]
    first = [prose.named(result), *([f"{standing}"] if standing else []), *result.story, result.reason]
    lines = [*first, *(tries if len(tries) > 1 else [])]
    room = most - len(end) - 1
    if room <= 0:
        return ""
    return prose.shortened("\n".join(filter(None, lines)), room) + "\n" + end


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
