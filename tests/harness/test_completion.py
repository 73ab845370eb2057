"""What a shell is offered; bash really sources the script, the others where they are installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness import completion
from harness.cli.command_tree import command_tree
from harness.completion import Question, candidates, of_bash
from harness.scenario import shipped

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def tree() -> completion.Tree:
    made: completion.Tree = json.loads(json.dumps(command_tree()))
    return made


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with two releases of Kafka."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for release in ("4.1.0", "2.8.1", "unpacked"):
        (tmp_path / "seawall" / "kafka" / release).mkdir(parents=True)
    return tmp_path / "seawall"


def offered(tree: completion.Tree, *words: str) -> list[str]:
    """What may stand for the last of the words."""
    return [one.value for one in candidates(tree, Question(words[:-1], words[-1]))]


def test_commands_and_what_follows_them(tree: completion.Tree) -> None:
    assert offered(tree, "r") == ["run", "report", "replay"]
    assert offered(tree, "scenario", "m") == ["matrix"]
    assert {"--target", "--json", "--set"} <= set(offered(tree, "run", "random-chaos", "--"))
    assert "--seed" not in offered(tree, "run", "--seed", "3", "--s")
    assert "--set" in offered(tree, "run", "--set", "workload.rate=5", "--s")
    assert offered(tree, "run", "--engine", "") == ["spark", "reference"]
    assert offered(tree, "run", "--engine=r") == ["--engine=reference"]
    assert offered(tree, "replay", "7", "--depth", "") == ["core", "stack"]
    assert offered(tree, "run", "--seed", "") == []


def test_every_scenario_and_every_entry_is_offered_by_its_name(tree: completion.Tree) -> None:
    assert set(offered(tree, "run", "")) == {name for one in shipped() for name in one.names}
    assert "A02" in offered(tree, "scenario", "run", "A0")
    assert offered(tree, "scenario", "matrix", "--only", "A02,kip-10") == ["A02,kip-101-double-failover"]


def test_targets_are_those_that_are_there(tree: completion.Tree, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cache)
    (cache / "mine.yml").touch()
    (cache / ".hidden").mkdir()
    assert {"builtin", "simulated", "process:2.8.1", "process:4.1.0"} <= set(offered(tree, "run", "--target", ""))
    assert offered(tree, "run", "--target", "process:4") == [
        "process:4.1.0", "process:4.1.0#quorum", "process:4.1.0#combined",
    ][:1]  # fmt: skip
    assert offered(tree, "run", "--target", "process:4.1.0#") == ["process:4.1.0#quorum", "process:4.1.0#combined"]
    assert offered(tree, "run", "--target", "compose:") == ["compose:kafka/", "compose:mine.yml"]
    assert offered(tree, "run", "--generation", "2.") == ["2.0.0", "2.0.1", "2.1", "2.8"]


def test_keys_of_settings_come_without_a_value_until_one_is_left(tree: completion.Tree) -> None:
    assert offered(tree, "run", "--set", "settings.min") == [
        "settings.min.insync.replicas=", "settings.min.insync.replicas=1",
    ]  # fmt: skip
    keys = offered(tree, "run", "--set", "")
    assert all(one.endswith("=") for one in keys)
    assert {one.partition(".")[0] for one in keys} == {"settings", "topic", "chaos", "replication"}
    assert "replication.bugs=ack_on_append" in offered(tree, "run", "--set", "replication.bugs=ack_on_a")


@pytest.mark.parametrize(
    ("written", "has", "lacks"),
    [
        ("{name: unique_sends, rate: 20}", "workload.consumers=", "workload.members="),
        ("{rate: 20, name: consumer_groups}", "workload.members=", "workload.consumers="),
        ("\n  size: 7\n  # of many\n  name: consumer_groups\n  members: 3", "workload.members=", "workload.consumers="),
    ],
)
def test_parameters_of_a_workload_are_those_of_the_scenario(
    tree: completion.Tree, tmp_path: Path, written: str, has: str, lacks: str
) -> None:
    scenario = tmp_path / "mine.yaml"
    scenario.write_text(f"id: mine\nworkload: {written}\nschedule: []\n")
    keys = offered(tree, "run", str(scenario), "--set", "")
    assert has in keys
    assert lacks not in keys
    assert {one.partition(".")[0] for one in keys} == {"settings", "workload", "topic", "chaos", "replication"}


def test_every_scenario_that_comes_with_seawall_has_a_workload_that_a_shell_can_complete(tree: completion.Tree) -> None:
    for one in shipped():
        (workload,) = completion._WORKLOAD.findall((ROOT / "harness/scenarios" / f"{one.origin}.yaml").read_text())
        assert workload == one.workload.name
        assert "workload.size=" in offered(tree, "run", one.origin, "--set", "workload.s")


def test_run_directories_come_newest_first(
    tree: completion.Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("runs/a/20260101T000000-1", "runs/b/20260102T000000-1", "elsewhere/20260103T000000-1"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "run.json").touch()
    assert offered(tree, "check", "") == ["runs/b/20260102T000000-1", "runs/a/20260101T000000-1"]
    assert offered(tree, "diff", "runs/a/20260101T000000-1", "elsewhere/") == ["elsewhere/20260103T000000-1"]


SUBSTITUTION = "$({touch,PWNED})"
HOSTILE = (
    SUBSTITUTION, f"\\{SUBSTITUTION}", "`touch${IFS}PWNED`", "a;touch", "a'b", 'a"b', r"a\b", "*", "a|b", "a&b",
    "\x1b[2J",
)  # fmt: skip


def test_what_a_shell_would_not_take_literally_is_not_offered(
    tree: completion.Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (*HOSTILE, "Läufe-1,2@x+y=z"):
        run = tmp_path / "runs" / name
        run.mkdir(parents=True)
        (run / "run.json").touch()
    assert offered(tree, "check", "") == ["runs/Läufe-1,2@x+y=z"]
    assert offered(tree, "run", "--target", "compose:runs/") == ["compose:runs/Läufe-1,2@x+y=z/"]
    assert offered(tree, "run", "--target=compose:runs/") == ["--target=compose:runs/Läufe-1,2@x+y=z/"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("text", [rf"\{SUBSTITUTION}", rf"\\{SUBSTITUTION}", f"a'b{SUBSTITUTION}", r"\`touch PWNED\`"])
def test_what_zsh_evaluates_twice_runs_nothing(text: str, tmp_path: Path) -> None:
    answer = completion._for_zsh([completion.Candidate(text, text)])
    program = '_arguments() { list=${1#*((}; eval "found=( ${list%))} )"; }; eval "$1"'
    subprocess.run(("bash", "--norc", "-c", program, "bash", answer), cwd=tmp_path, check=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "word", "kept"),
    [
        (["seawall", "run", "--target", "process", ":", "4"], "process:4", "process:"),
        (["seawall", "run", "--target", "process", ":"], "process:", "process:"),
        (["seawall", "run", "--target", "=", "process", ":", "4"], "--target=process:4", "--target=process:"),
        (["seawall", "run", "--set", "a.b", "="], "a.b=", "a.b="),
        (["seawall", "run", "--set", "'a"], "a", ""),
        (["seawall", "run", ""], "", ""),
    ],
)
def test_bash_takes_signs_for_words_of_their_own(words: list[str], word: str, kept: str) -> None:
    question = of_bash(words, len(words) - 1)
    assert (question.word, question.kept) == (word, kept)
    assert question.words in (["run", "--target"], ["run", "--set"], ["run"])


def test_what_commands_take_is_kept_until_they_change(
    cache: Path, tree: completion.Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert completion.tree() == tree
    [kept] = cache.glob("completion-*.json")
    kept.write_text('{"kept": 1}')
    assert completion.tree() == {"kept": 1}
    monkeypatch.setattr(completion, "_digest", lambda: "changed")
    assert completion.tree() == tree
    assert [path.name for path in cache.glob("completion-*")] == ["completion-changed.json"]


# ---------------------------------------------------------------------------------------------------- shells


def environment(cache: Path) -> dict[str, str]:
    return {
        **os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(cache.parent),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }  # fmt: skip


def script(shell: str, cache: Path) -> str:
    command = (BIN / "seawall", "--show-completion", shell)
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment(cache)).stdout


def in_bash(cache: Path, lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """What bash would offer for each line, by the function that the script defines."""
    ask = "\n".join(
        f"COMP_WORDS=({' '.join(map(repr, line))}); COMP_CWORD={len(line) - 1}; COMPREPLY=(); "
        '_seawall_completion seawall; echo "${COMPREPLY[*]}"'
        for line in lines
    )
    program = f"set -u\n{script('bash', cache)}\ncomplete -p seawall >/dev/null\n{ask}"
    command = ("bash", "--norc", "-c", program)
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment(cache))
    assert ran.stderr == ""
    return [line.split(" ") for line in ran.stdout.splitlines()]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_what_it_has_sourced(cache: Path) -> None:
    assert in_bash(
        cache,
        [
            ["seawall", "sim"],
            ["seawall", "run", "kip-101"],
            ["seawall", "run", "--target", "process", ":", "2"],
            ["seawall", "run", "--set", "settings.min.insync.replicas", "="],
            ["seawall", "no-such-command", "x"],
        ],
    ) == [["simulate"], ["kip-101-double-failover"], ["2.8.1"], ["1"], [""]]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_their_script(cache: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (cache / shell).write_text(script(shell, cache))
    checked = subprocess.run((shell, "-n", str(cache / shell)), capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def asked(cache: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = (BIN / "seawall",)
    known = {**environment(cache), **variables}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=known)


def test_zsh_and_fish_are_answered_with_what_a_value_means(cache: Path) -> None:
    line = "seawall run --target process:4"
    zsh = asked(cache, _SEAWALL_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line)
    assert zsh.stdout == """_arguments '*: :(("process\\\\:4.1.0":"Kafka 4.1.0"))'\n"""
    assert asked(cache, _SEAWALL_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="seawall run ./").stdout == "_files\n"
    fish = {"_SEAWALL_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": line}
    assert asked(cache, _TYPER_COMPLETE_FISH_ACTION="get-args", **fish).stdout == "process:4.1.0\tKafka 4.1.0\n"
    assert asked(cache, _TYPER_COMPLETE_FISH_ACTION="is-args", **fish).returncode == 0
    fish["_TYPER_COMPLETE_ARGS"] = "seawall run ./"
    assert asked(cache, _TYPER_COMPLETE_FISH_ACTION="is-args", **fish).returncode == 1


def test_a_tab_imports_no_command_and_what_is_broken_completes_nothing(cache: Path) -> None:
    completion_of = {"_SEAWALL_COMPLETE": "complete_bash", "COMP_WORDS": "seawall\nr", "COMP_CWORD": "1"}
    assert asked(cache, **completion_of).stdout.split() == ["run", "report", "replay"]
    program = (
        "import sys; from seawall_entry import main; code = main(); "
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & {'typer', 'rich', 'pydantic', 'pyspark'}), "
        "code)"
    )
    known = {**environment(cache), **completion_of}
    command = (sys.executable, "-c", program)
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=known, cwd=ROOT)
    assert ran.stdout.splitlines()[-1] == "0"
    broken = asked(cache, **{**completion_of, "COMP_CWORD": "one"})
    assert (broken.returncode, broken.stdout, broken.stderr) == (0, "", "")


def test_an_installation_sources_the_script(cache: Path, tmp_path: Path) -> None:
    known = {**environment(cache), "HOME": str(tmp_path)}
    command = (BIN / "seawall", "--install-completion", "bash")
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=known)
    assert "installed" in ran.stdout
    assert ".bash_completions/seawall.sh" in (tmp_path / ".bashrc").read_text()
    assert list(cache.glob("completion-*.json")), "the first TAB would be slow"
