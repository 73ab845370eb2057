"""``docs/generations.md`` is current, and the flaws that it names are where it says."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from harness.outcome import Word
from harness.replication.knobs import GENERATIONS
from harness.runner.expectation import expectations
from harness.scenario import Expectation
from tests.harness.replication.world import World
from tests.seeds import flaws
from tests.seeds.flaws import FLAWS, Flaw
from tests.seeds.table import catalogued


@pytest.mark.parametrize("flaw", [flaw for flaw in FLAWS if flaw.schedule], ids=lambda flaw: flaw.name)
def test_the_generations_that_are_said_to_have_a_flaw_do_harm_by_it_and_no_others(flaw: Flaw) -> None:
    assert flaw.schedule is not None
    assert tuple(name for name in flaws.NAMES if harm(flaw.schedule(name))) == flaw.generations


def harm(world: World) -> list[object]:
    """Promised records that are lost, and offsets below both watermarks at which two replicas differ."""
    return [*world.lost(), *world.diverged()]


def test_the_knobs_that_mended_a_flaw_exist_and_changed_with_the_next_generation() -> None:
    for flaw in FLAWS:
        last = GENERATIONS[flaw.last]
        following = GENERATIONS[flaws.NAMES[flaws.NAMES.index(flaw.last) + 1]]
        assert not [knob for knob in flaw.knobs if getattr(last, knob) == getattr(following, knob)], flaw.name


@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.name)
def test_the_scenarios_of_a_flaw_expect_less_harm_from_the_generation_that_mended_it(flaw: Flaw) -> None:
    following = flaws.NAMES[flaws.NAMES.index(flaw.last) + 1]
    for entry in flaw.scenarios:
        variants = [expectations(scenario) for scenario in catalogued()[entry]]
        assert any(harm_expected(one[flaw.last]) - harm_expected(one[following]) for one in variants), entry


def harm_expected(expectation: Expectation) -> set[Word]:
    return {Word.LOST, Word.DIVERGED, Word.STUCK, Word.EXITED} & {*expectation.outcome}


def test_the_document_s_tables_are_those_of_the_generations(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite"):
        flaws.DOCUMENT.write_text(flaws.document())
    assert flaws.document() == flaws.DOCUMENT.read_text()


def test_the_picture_is_that_of_the_flaws(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite"):
        flaws.PICTURE.write_text(flaws.picture())
    assert flaws.picture() == flaws.PICTURE.read_text()
    ET.fromstring(flaws.picture())


def test_every_generation_is_told_of(request: pytest.FixtureRequest) -> None:
    told = flaws.DOCUMENT.read_text()
    assert not [name for name in flaws.NAMES if f"\n### {name}\n" not in told]
