"""One process: a mutant, or the code as it is, under a list of trials. Reads JSON from standard input, writes it.

Started as ``python -O``: the code's own assertions are off, so that only checkers detect it. The mutated module is
compiled from its edited syntax tree when it is imported; no file is changed.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from tests.mutation.mutants import REACHED, Mutant, compiled, statements_of

if TYPE_CHECKING:
    from tests.mutation.trials import Result, Trial

_MOST_BYTES = 3 << 30
_MOST_CRASHES, _MOST_ENDLESS = 10, 2


class _Edited(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports some modules from code that is given.

    Args:
        codes: by the module's name.
        reached: what instrumented code calls with the number of a line.
    """

    def __init__(self, codes: Mapping[str, CodeType], reached: Callable[[str], Callable[[int], None]]) -> None:
        self._codes = codes
        self._reached = reached

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name in self._codes else None

    def exec_module(self, module: ModuleType) -> None:
        vars(module)[REACHED] = self._reached(module.__name__)
        exec(self._codes[module.__name__], vars(module))


def tried(mutant: Mutant, trials: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Run the trials until the mutant is detected, or has crashed too often; see :func:`_plain`."""
    sys.meta_path.insert(0, _Edited({_dotted(mutant.module): compiled(mutant)}, lambda _: lambda _: None))
    results: list[tuple[Trial, Result]] = []
    try:
        from tests.mutation.trials import Trial, perform
    except Exception as error:  # noqa: BLE001 - whatever mutated code raises is its result
        return {"runs": 0, "outcomes": {"crashed": 1}, "kinds": [], "why": f"{type(error).__name__}: {error}"[:200]}
    for one in trials:
        trial = Trial(*one)
        results.append((trial, perform(trial)))
        if results[-1][1].is_detected or _is_hopeless([result.outcome for _, result in results]):
            break
    return _plain(results)


def _is_hopeless(outcomes: Sequence[str]) -> bool:
    """Whether a mutant crashes, or goes on for ever, too often to be worth more trials."""
    return outcomes.count("crashed") >= _MOST_CRASHES or outcomes.count("endless") >= _MOST_ENDLESS


def _plain(results: Sequence[tuple[Trial, Result]]) -> dict[str, Any]:
    """How many trials were run, what each left, their outcomes, what detected it, and the first reason for a doubt."""
    outcomes: dict[str, int] = {}
    for _, result in results:
        outcomes[result.outcome] = outcomes.get(result.outcome, 0) + 1
    last = results[-1] if results and results[-1][1].is_detected else None
    why = next((result.why for _, result in results if result.why), "")
    by = {} if last is None else {"by": list(last[0])}
    digests = [result.digest for _, result in results]
    kinds = list(last[1].kinds) if last else []
    return {"runs": len(results), "digests": digests, "outcomes": outcomes, "kinds": kinds, "why": why, **by}


def control(modules: Sequence[str], most: int | None = None) -> list[dict[str, Any]]:
    """The first ``most`` trials (None: all) with the code as it is: their outcomes, and the statements they reach."""
    reached: set[tuple[str, int]] = set()
    names = {_dotted(module): module for module in modules}
    codes = {name: statements_of(module) for name, module in names.items()}
    sys.meta_path.insert(0, _Edited(codes, lambda name: lambda line: reached.add((names[name], line))))
    from tests.mutation.trials import perform, trials

    found = []
    for trial in islice(trials(), most):
        reached.clear()
        result = perform(trial)
        found.append({"trial": list(trial), "result": list(result), "reached": sorted(reached)})
    return found


def _dotted(module: str) -> str:
    return module.removesuffix(".py").replace("/", ".")


def main() -> None:
    """Do what standard input asks for."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    asked = json.load(sys.stdin)
    answer = tried(Mutant(*asked["mutant"]), asked["trials"]) if "mutant" in asked else control(**asked)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
