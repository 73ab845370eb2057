"""How a run is done again."""

from __future__ import annotations

from harness.cli.reproduction import Reproduction


def test_it_is_the_command_line_quoted_for_a_shell() -> None:
    assert str(Reproduction(["run", "my file.yaml", "--set", "topic.name=a b"])) == (
        "seawall run 'my file.yaml' --set 'topic.name=a b'"
    )


def test_what_was_drawn_is_added_and_what_was_given_stays() -> None:
    drawn, given = Reproduction(["run", "x"]), Reproduction(["run", "x", "--seed", "1"])
    drawn.fix("--seed", 5)
    given.fix("--seed", 5)
    assert (str(drawn), str(given)) == ("seawall run x --seed 5", "seawall run x --seed 1")
