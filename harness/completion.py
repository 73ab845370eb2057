"""Completes a command line for bash, zsh and fish, within a few hundredths of a second.

The shells call ``seawall`` with :data:`VARIABLE` as the scripts of ``seawall --show-completion`` have it. Importing all
commands would take half a second for every TAB, so what they take is kept in a file of the cache
(:mod:`harness.cli.command_tree` makes it), until a source file that it comes from has changed. This module imports the
standard library alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

VARIABLE = "_SEAWALL_COMPLETE"

Tree = Mapping[str, Any]
"""A command: ``options``, ``arguments`` and ``commands`` by name; the root has what else can be completed besides, such
as the ``keys`` of ``--set``."""

_ROOT = Path(__file__).resolve().parents[1]
_MADE_OF = ("harness/cli/*.py", "harness/scenario.py", "harness/broker/settings.py", "harness/replication/knobs.py")
_MADE_OF_TOO = ("harness/replication/bugs.py", "workloads/*.py")
_SHELLS = ("bash", "zsh", "fish")
_BREAKS = re.compile(r"[:=]+")
_PLAIN = re.compile(r"[\w@%+=:,./#-]+")
_RELEASE = re.compile(r"\d+(\.\d+)+")
_QUORUMS_SINCE = (3, 3)
_MOST_RUNS = 50
_YAML = (".yaml", ".yml")
_WORKLOAD = re.compile(r"^workload:[ ]*(?:\{(?:[^{}]*,)?|(?:#.*)?(?:\n[ ]+.*)*?\n)[ ]*name:[ ]*([\w-]+)", re.MULTILINE)
"""The name of a scenario's workload, on a line of its own or between braces."""


class Candidate(NamedTuple):
    """A value of the word under the cursor, and what it means."""

    value: str
    help: str = ""


class Question(NamedTuple):
    """The words before the one under the cursor, without ``seawall``; that word as far as typed; what bash keeps of it.

    Attributes:
        kept: the beginning of the word that the shell takes for words of their own, and keeps.
    """

    words: Sequence[str]
    word: str
    kept: str = ""


def answers_shell() -> bool:
    """Whether a shell has called this process to complete a command line."""
    instruction, _, shell = os.environ.get(VARIABLE, "").partition("_")
    return instruction == "complete" and shell in _SHELLS


def main() -> int:
    """Print the candidates as the shell wants them; a failure completes nothing, for a prompt is no place for it."""
    shell = os.environ[VARIABLE].partition("_")[2]
    try:
        question = _asked_by(shell)
        found = list(candidates(tree(), question))
    except Exception:  # noqa: BLE001
        found, question = [], Question((), "")
    match shell:
        case "bash":
            text = "\n".join(one.value.removeprefix(question.kept) for one in found)
        case "zsh":
            text = _for_zsh(found)
        case _:
            if os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
                return 0 if found else 1
            text = "\n".join(f"{one.value}\t{' '.join(one.help.split())}".rstrip() for one in found)
    if text:
        sys.stdout.write(f"{text}\n")
    return 0


# ---------------------------------------------------------------------------------------------------- what was asked


def _asked_by(shell: str) -> Question:
    if shell == "bash":
        words = os.environ["COMP_WORDS"].split("\n")
        return of_bash(words, int(os.environ["COMP_CWORD"]))
    line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = line.split()[1:]
    if line.endswith((" ", "\n")) or not words:
        return Question(words, "")
    return Question(words[:-1], words[-1])


def of_bash(words: Sequence[str], cursor: int) -> Question:
    """What bash asks with ``COMP_WORDS`` and ``COMP_CWORD``: it takes ``:`` and ``=`` for words of their own.

    With them goes what surrounds them, because seawall writes no blanks there.
    """
    whole: list[str] = []
    kept, goes_on = "", False
    for word in words[: cursor + 1]:
        is_break = _BREAKS.fullmatch(word) is not None
        if whole and (is_break or goes_on):
            kept = whole[-1] + word if is_break else whole[-1]
            whole[-1] += word
        else:
            whole.append(word)
            kept = ""
        goes_on = is_break
    if cursor >= len(words) or len(whole) < 2:
        return Question(whole[1:], "")
    return Question(whole[1:-1], whole[-1].lstrip("'\""), kept)


# ---------------------------------------------------------------------------------------------------- candidates


def candidates(root: Tree, question: Question) -> Iterator[Candidate]:
    """The values that may stand for the word under the cursor, without those that a shell would not take literally.

    The script of zsh evaluates them, and bash writes them into the command line as they are: a directory named
    ``$(command)`` would run it.
    """
    command, awaited, given, positions = _parsed(root, question.words)
    root = {**root, "keys": _keys(root, question.words)}
    word = question.word
    if awaited is not None:
        found, before = _values(root, awaited, word), ""
    elif word.startswith("--") and "=" in word:
        name, _, word = word.partition("=")
        found, before = _values(root, _option(command, name) or {}, word), f"{name}="
    elif word.startswith("-"):
        found, before = _options(command, given), ""
    elif command["commands"]:
        found, before = (Candidate(name, one["help"]) for name, one in command["commands"].items()), ""
    else:
        argument = _argument(command, positions)
        found, before = iter(()) if argument is None else _values(root, argument, word), ""
    for one in found:
        if one.value.startswith(word) and _PLAIN.fullmatch(one.value):
            yield Candidate(before + one.value, one.help)


def _parsed(root: Tree, words: Sequence[str]) -> tuple[Tree, Tree | None, set[str], int]:
    """The command that the words name, the option whose value comes next, the options given, how many arguments."""
    command, awaited, given, positions = root, None, set[str](), 0
    for word in words:
        if awaited is not None:
            awaited = None
        elif word.startswith("-"):
            name, has_value, _ = word.partition("=")
            option = _option(command, name)
            given.update(option["names"] if option and not option["multiple"] else ())
            awaited = option if option and not option["flag"] and not has_value else None
        elif word in command["commands"]:
            command = command["commands"][word]
        else:
            positions += 1
    return command, awaited, given, positions


def _option(command: Tree, name: str) -> Tree | None:
    return next((one for one in command["options"] if name in one["names"]), None)


def _options(command: Tree, given: set[str]) -> Iterator[Candidate]:
    for one in command["options"]:
        if not given.intersection(one["names"]):
            yield Candidate(max(one["names"], key=len), one["help"])


def _argument(command: Tree, number: int) -> Tree | None:
    arguments = command["arguments"]
    if number < len(arguments):
        return dict(arguments[number])
    return dict(arguments[-1]) if arguments and arguments[-1]["multiple"] else None


def _values(root: Tree, parameter: Tree, word: str) -> Iterator[Candidate]:
    """The values of an option or an argument: its choices, or what its metavar stands for."""
    if parameter.get("choices"):
        yield from map(Candidate, parameter["choices"])
        return
    metavar = str(parameter.get("metavar") or "").removesuffix("...")
    if metavar == "KEY=VALUE":
        yield from _settings(root["keys"], word)
    elif metavar.endswith((",ID", ",G-G", ",B")):
        begun = word[: word.rfind(",") + 1]
        source = _SOURCES[metavar.partition(",")[0]]
        yield from (Candidate(begun + one.value, one.help) for one in source(root, word))
    else:
        for kind in metavar.split("|"):
            yield from _SOURCES[kind](root, word) if kind in _SOURCES else ()
            if "|" in metavar and not kind.isupper():
                yield Candidate(kind)


def _keys(root: Tree, words: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """What ``--set`` takes; of a workload's parameters those of the scenario that the words name, if they do."""
    for word in words:
        named = _ROOT / "harness" / "scenarios" / f"{word}.yaml"
        with suppress(OSError, UnicodeError):
            path = Path(word) if word.endswith(_YAML) else named
            if path.is_file() and (workload := _WORKLOAD.search(path.read_text(encoding="utf-8"))):
                return {**root["keys"], **root["workloads"].get(workload[1], {})}
    return root["keys"]  # type: ignore[no-any-return]


def _settings(keys: Mapping[str, Sequence[str]], word: str) -> Iterator[Candidate]:
    """``key=`` for each; for the only one its values, too, so that a shell goes no further than the sign by itself."""
    wanted, sign, _ = word.partition("=")
    found = [key for key in keys if (key == wanted if sign else key.startswith(wanted))]
    for key in found:
        if not sign:
            yield Candidate(f"{key}=")
        if len(found) == 1:
            yield from (Candidate(f"{key}={value}") for value in keys[key])


def _scenarios(_: Tree, __: str) -> Iterator[Candidate]:
    """The ids of the scenarios that come with seawall, and the entries of the catalogue."""
    entries: dict[str, str] = {}
    for path in sorted((_ROOT / "harness" / "scenarios").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        title = re.search(r"^title: *(.*)", text, re.MULTILINE)
        about = title[1].strip("'\"") if title else ""
        yield Candidate(path.stem, about)
        if entry := re.search(r"^catalogue: *(\S+)", text, re.MULTILINE):
            entries.setdefault(entry[1].partition("/")[0], about)
            entries.setdefault(entry[1], about)
    yield from (Candidate(name, about) for name, about in sorted(entries.items()))


def _targets(tree: Tree, word: str) -> Iterator[Candidate]:
    kind, colon, rest = word.partition(":")
    arguments: Mapping[str, str] = tree["targets"]
    if not colon:
        yield from map(Candidate, arguments)
    for name, argument in arguments.items():
        if argument == "RELEASE" and (not colon or name == f"{kind}:"):
            yield from _releases(name, rest)
    if colon:
        suffixes = _YAML if arguments.get(f"{kind}:") == "FILE" else ()
        yield from (Candidate(f"{kind}:{path}") for path in _paths(rest, suffixes))


def _releases(target: str, word: str) -> Iterator[Candidate]:
    for release in fetched():
        yield Candidate(f"{target}{release}", f"Kafka {release}")
        if tuple(map(int, release.split(".")[:2])) >= _QUORUMS_SINCE and release in word:
            yield Candidate(f"{target}{release}#quorum", "three controllers")
            yield Candidate(f"{target}{release}#combined", "every broker is a controller, too")


def fetched() -> list[str]:
    """The releases of Kafka in the cache, oldest first."""
    names = [path.name for path in (_cache() / "kafka").glob("*") if _RELEASE.fullmatch(path.name)]
    return sorted(names, key=lambda name: [int(number) for number in name.split(".")])


def _paths(word: str, suffixes: Sequence[str]) -> Iterator[str]:
    """Directories, and files with one of these suffixes, whose paths begin with ``word``."""
    folder = word[: word.rfind("/") + 1]
    with suppress(OSError):
        for path in sorted(Path(folder or ".").iterdir()):
            if path.name.startswith(".") and not word.removeprefix(folder).startswith("."):
                continue
            if path.is_dir():
                yield f"{folder}{path.name}/"
            elif path.suffix in suffixes:
                yield f"{folder}{path.name}"


def _runs(_: Tree, word: str) -> Iterator[Candidate]:
    """The newest run directories below ``runs``, or below the directory that is being written."""
    below = word[: word.rfind("/") + 1] or "runs/"
    found: list[tuple[str, str]] = []
    for pattern in ("run.json", "*/run.json", "*/*/run.json"):
        found += ((path.parent.name, str(path.parent)) for path in Path(below).glob(pattern))
    for _name, path in sorted(set(found), reverse=True)[:_MOST_RUNS]:
        yield Candidate(path)


def _named(name: str) -> Callable[[Tree, str], Iterator[Candidate]]:
    return lambda root, _: map(Candidate, root[name])


_SOURCES: Mapping[str, Callable[[Tree, str], Iterable[Candidate]]] = {
    **dict.fromkeys(("SCENARIO", "ID"), _scenarios),
    **dict.fromkeys(("RUN_DIR", "RUN_A", "RUN_B"), _runs),
    "TARGET": _targets,
    "G": _named("generations"),
    "A": _named("bugs"),
    "VERSION": _named("releases"),
}
"""By metavar, or by the first part of a list of them."""


def _for_zsh(found: Sequence[Candidate]) -> str:
    """What the script of Typer evaluates; nothing to offer: files."""
    if not found:
        return "_files"
    lines = [f'"{_escaped(one.value)}"' + (f':"{_escaped(one.help)}"' if one.help else "") for one in found]
    return "_arguments '*: :(({}))'".format("\n".join(lines))


def _escaped(text: str) -> str:
    for plain, escaped in (("\\", r"\\\\"), ('"', '""'), ("'", "''"), ("$", "\\$"), ("`", "\\`"), (":", r"\\:")):
        text = text.replace(plain, escaped)
    return text


# ---------------------------------------------------------------------------------------------------- the cache


def tree() -> Tree:
    """What the commands take, from the cache; else it is made, which takes a second, and kept there if possible."""
    path = _cache() / f"completion-{_digest()}.json"
    with suppress(OSError, ValueError):
        kept: Tree = json.loads(path.read_text(encoding="utf-8"))
        return kept
    from harness.cli.command_tree import command_tree  # noqa: PLC0415 - imports every command

    made = command_tree()
    with suppress(OSError):
        _keep(path, json.dumps(made))
    return made


def _keep(path: Path, text: str) -> None:
    """Replace what an earlier version has left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
    for other in path.parent.glob("completion-*.json"):
        if other != path:
            other.unlink(missing_ok=True)


def _digest() -> str:
    files = sorted(path for pattern in (*_MADE_OF, *_MADE_OF_TOO) for path in _ROOT.glob(pattern))
    stats = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files]
    return hashlib.sha256(repr(stats).encode()).hexdigest()[:16]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seawall"
