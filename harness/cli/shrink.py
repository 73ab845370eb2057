"""``seawall shrink SEED | RUN_DIR | SCENARIO``: finds the shortest schedule that still shows an anomaly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.run import overrides
from harness.cli.simulate import DEFAULT_DEPTH, Depth, Settings
from harness.cli.terminal import Say, progress
from harness.errors import ExitCode, SeawallError, UsageError
from harness.replication.knobs import CURRENT_GENERATION, GENERATIONS, written
from harness.replication.knobs import generation as generation_named

if TYPE_CHECKING:
    from harness.exploration.shrink import Shrunk
    from harness.scenario import Scenario

_SESSION_MS = 1_500
"""About the session timeout of a shrunk scenario, which is long beside the delays of networks and processes."""

_PLACES = {"core": "in the core", "stack": "on the whole broker"}

Document = dict[str, Any]


def shrink(
    context: typer.Context,
    what: Annotated[
        str, typer.Argument(metavar="SEED|RUN_DIR|SCENARIO", help="A simulated seed, a recorded run, or a scenario.")
    ],
    generation: Annotated[
        str | None, typer.Option(metavar="G", help=f"Replication protocol: {', '.join(GENERATIONS)}.")
    ] = None,
    depth: Depth = DEFAULT_DEPTH,
    set_: Settings = None,
) -> int:
    """Leave out of a schedule what is not needed to show the same anomaly, and print what is left as a scenario.

    Seeds are shrunk at the depth at which they were found; recorded runs and scenarios by running them again in
    virtual time, where they must show it to begin with. Ends with 0 when it has printed one.
    """
    say = progress()
    if what.isdecimal():
        text = _shrunk_seed(int(what), (generation or CURRENT_GENERATION, depth), set_ or [], say)
        context.obj.fix("--generation", generation or CURRENT_GENERATION)
    else:
        document, name, knobs = _written(what, generation)
        text = _shrunk_document(document, name, {**knobs, **overrides(set_ or ())}, say)
    typer.echo(text, nl=False)
    return ExitCode.PASS


# ------------------------------------------------------------------------------------------------------------- seeds


def _shrunk_seed(seed: int, where: tuple[str, str], settings: Sequence[str], say: Say) -> str:
    from harness.exploration.scenario_text import INEXPRESSIBLE, to_yaml
    from harness.exploration.shrink import NothingToShrink, shrink_seed
    from harness.simulation.core.configuration import setup
    from harness.simulation.trace import describe

    generation, depth = where
    try:
        shrunk = shrink_seed(seed, setup(generation, overrides(settings), depth), say)
    except NothingToShrink as nothing:
        raise UsageError(str(nothing), "`seawall simulate` names the seeds that do.") from None
    planned = [f"{one.at_ns / 1e6:.3f} ms: {one.kind} {describe(one)}" for one in shrunk.faults]
    pinned = " ".join(settings) or "nothing pinned"
    remarks = [f"Seed {seed}, generation {generation}, {pinned}: {_PLACES[depth]}, with"]
    remarks += [*(f"  {one}" for one in planned), f"shows {shrunk.violation}"]
    left_out = sorted({one.kind for one in shrunk.faults} & INEXPRESSIBLE)
    if left_out:
        remarks.append(f"A scenario has no {' and no '.join(left_out)}: they are left out.")
    document, words = _best_on_the_stack(shrunk, say)
    if words:
        document = _least(document, generation, {}, words, say)
        remarks.append("On the whole broker in virtual time this schedule shows it, too:")
        remarks.append("seawall scenario run FILE --target simulated")
    else:
        remarks.append(
            "On the whole broker in virtual time this schedule does not show it: its messages take other times."
        )
    return to_yaml(document, remarks)


def _best_on_the_stack(shrunk: Shrunk, say: Say) -> tuple[Document, list[str]]:
    """The scenario at the first time scale at which the whole broker shows harm, and that harm in words."""
    from harness.exploration.scenario_text import shrunk_document

    first = max(1, _SESSION_MS // shrunk.configuration.session_timeout_ms)
    scales = list(dict.fromkeys((first, 4 * first, max(1, first // 4), 1)))
    for scale in scales:
        document = shrunk_document(shrunk, scale)
        words = _harm(document, shrunk.setup.generation, {})
        say(f"on the whole broker, {scale} times as slow: {', '.join(words) or 'no harm'}")
        if words:
            return document, words
    return shrunk_document(shrunk, first), []


# ------------------------------------------------------------------------------------------------ scenarios and runs


def _written(what: str, generation: str | None) -> tuple[Document, str, Mapping[str, str]]:
    """The schedule to shrink as plain data, its generation, and the knobs that its run had overridden."""
    from harness.runner.expectation import expectations
    from harness.scenario import Scenario
    from harness.validation import validated

    path = Path(what)
    if (path / "run.json").exists():
        from harness.history.run_directory import RunDirectory

        manifest = RunDirectory.open(path).manifest()
        recorded = validated(Scenario, manifest.configuration.get("scenario", {}), "")
        document = recorded.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        name = generation or manifest.generation
        changed = _turned(manifest.configuration.get("knobs", {}), asdict(generation_named(name)))
    else:
        scenario = _the_one(what)
        document = scenario.model_dump(mode="json", by_alias=True, exclude_unset=True)
        known = expectations(scenario)
        name, changed = generation or scenario.generation or next(iter(known), CURRENT_GENERATION), {}
    if not document.get("schedule"):
        raise UsageError(
            f"{what}: random chaos has no schedule that could be shrunk.",
            "Find a seed that shows the same with `seawall simulate`, and shrink that.",
        )
    return document, name, changed


def _turned(knobs: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, str]:
    """The knobs of a run that differ from its generation's, as ``--set`` takes them."""
    ours = {knob: tuple(map(str, value)) if isinstance(value, list) else value for knob, value in knobs.items()}
    return {f"replication.{knob}": written(value) for knob, value in ours.items() if known.get(knob) != value}


def _the_one(name: str) -> Scenario:
    from harness.scenario import find

    found = find(name)
    if len(found) > 1:
        raise UsageError(
            f"{name!r} means {len(found)} scenarios, and only one can be shrunk.",
            f"Name one of {', '.join(one.id for one in found)}.",
        )
    return found[0]


def _shrunk_document(document: Document, generation: str, settings: Mapping[str, str], say: Say) -> str:
    from harness.exploration.scenario_text import to_yaml

    bare = {key: value for key, value in document.items() if key not in ("outcomes", "predictions")}
    wanted = set(_harm(bare, generation, settings))
    if not wanted:
        raise UsageError(
            f"scenario {document['id']!r} does no harm on generation {generation} in virtual time.",
            "Name a generation that does with --generation.",
        )
    shorter = _least(bare, generation, settings, sorted(wanted), say)
    remarks = [f"Shrunk from {len(bare['schedule'])} steps, to be run with"]
    remarks += [f"seawall scenario run FILE --target simulated --generation {generation}"]
    return to_yaml(shorter, remarks + [f"(found with --set {key}={value})" for key, value in settings.items()])


def _least(
    document: Document, generation: str, settings: Mapping[str, str], words: Sequence[str], say: Say
) -> Document:
    """``document`` with as few steps as still show these ``words`` in virtual time, and its outcome."""
    from harness.exploration.shrink import fewest

    tried = 0

    def shows(some: tuple[Document, ...]) -> bool:
        nonlocal tried
        tried += 1
        kept = _consistent(some)
        return bool(kept) and set(words) <= set(_harm({**document, "schedule": kept}, generation, settings))

    say(f"{', '.join(words)} after {len(document['schedule'])} steps; leaving out what is not needed")
    kept = _consistent(fewest(document["schedule"], shows))
    found = _harm({**document, "schedule": kept}, generation, settings)
    say(f"{len(kept)} steps are left after {tried} runs")
    return {**document, "schedule": kept, "outcomes": {generation: {"outcome": found}}}


def _consistent(steps: Sequence[Document]) -> list[Document]:
    """The steps without those that refer to a removed fault, hold or send."""
    names: set[str] = set()
    kept = []
    for step in steps:
        named = {part["as"] for part in step.values() if isinstance(part, dict) and part.get("as")}
        until = step.get("until") or {}
        spoken = {name for name in (step.get("heal"), step.get("release"), until.get("sent")) if name}
        if spoken <= names:
            names |= named
            kept.append(step)
    return kept


def _harm(document: Document, generation: str, settings: Mapping[str, str]) -> list[str]:
    """The harm that a run of this scenario in virtual time shows, in words; empty: it is safe, or proves nothing."""
    from harness.outcome import Word
    from harness.runner import plan
    from harness.runner.observation import Gathered, observe
    from harness.runner.rehearsal import rehearse
    from harness.scenario import Scenario
    from harness.validation import validated

    try:
        scenario = validated(Scenario, document, "")
        rehearsal = rehearse(plan(scenario, "simulated", generation, overrides=settings))
    except SeawallError:
        return []
    observed = observe(Gathered.kept(rehearsal.manifest, rehearsal.archive))
    return [str(word) for word in observed.words if word is not Word.SAFE] if not observed.invalid else []
