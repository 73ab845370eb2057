"""What the tests' own engine undoes in the machine's packet filters, and what it leaves to others."""

from __future__ import annotations

from tests.harness.targets.compose.daemon import undoing

OURS = "-A INPUT -s 127.0.0.2/32 -d 127.0.0.1/32 -m comment --comment seawall -j DROP"
BEFORE = ["*filter", ":INPUT ACCEPT [1:2]", ":FORWARD ACCEPT [0:0]", OURS, "COMMIT"]
ENGINES = [
    "-A FORWARD -j DOCKER-USER",
    "-A FORWARD -o br-1a2b3c4d5e6f -j DOCKER",
    "-A FORWARD -i br-1a2b3c4d5e6f ! -o br-1a2b3c4d5e6f -j ACCEPT",
    "-A DOCKER-USER -j RETURN",
]


def test_chains_rules_and_policies_of_an_engine_are_undone() -> None:
    chains = [":INPUT ACCEPT [8:9]", ":FORWARD DROP [0:0]", ":DOCKER - [0:0]", ":DOCKER-USER - [0:0]"]
    assert list(undoing(BEFORE, ["*filter", *chains, OURS, *ENGINES, "COMMIT"])) == [
        ":FORWARD ACCEPT",
        *(line.replace("-A ", "-D ", 1) for line in ENGINES),
        "-X DOCKER",
        "-X DOCKER-USER",
    ]


def test_rules_that_others_have_added_or_removed_meanwhile_stay_as_they_are() -> None:
    another = OURS.replace("127.0.0.2", "127.0.0.3")
    assert not list(undoing(BEFORE, ["*filter", ":INPUT ACCEPT [8:9]", ":FORWARD ACCEPT [0:0]", another, "COMMIT"]))


def test_what_another_engine_had_there_before_stays() -> None:
    theirs = [*BEFORE[:3], ":DOCKER-USER - [0:0]", *ENGINES]
    assert not list(undoing(theirs, theirs))
