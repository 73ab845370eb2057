from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import EnvironmentFault
from harness.java import feature_version, find_java, refuse_old, version_line
from tests.harness.fake_java import fake_java, java_that_says

REMEDY = "Get one."


def test_the_java_of_java_home_goes_before_the_one_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "path").mkdir()
    in_home, on_path = fake_java(tmp_path / "home", ""), fake_java(tmp_path / "path", "")
    monkeypatch.setenv("PATH", str(Path(on_path).parent))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java("Ours", REMEDY) == in_home
    monkeypatch.setenv("JAVA_HOME", "")
    assert find_java("Ours", REMEDY) == on_path
    monkeypatch.delenv("JAVA_HOME")
    assert find_java("Ours", REMEDY) == on_path


def test_where_no_java_was_found_is_said_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for home, place in ((str(tmp_path), f"in JAVA_HOME ({tmp_path})"), ("", "on the PATH")):
        monkeypatch.setenv("JAVA_HOME", home)
        with pytest.raises(EnvironmentFault) as missing:
            find_java("Ours", REMEDY)
        assert str(missing.value) == f"Ours needs Java 17 or newer, and there is none {place}. Get one."


@pytest.mark.parametrize(
    ("said", "feature"),
    [
        ('java version "1.8.0_402"', 8),
        ('openjdk version "1.8.0_402-ea"', 8),
        ('openjdk version "11.0.22" 2024-01-16', 11),
        ('openjdk version "17.0.2" 2022-01-18', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "22-ea" 2024-03-19', 22),
        ('openjdk version "23-internal" 2024-09-17', 23),
    ],
)
def test_a_java_says_how_old_it_is(said: str, feature: int, tmp_path: Path) -> None:
    java = java_that_says(tmp_path, said)
    assert (version_line(java), feature_version(java)) == (said, feature)


def test_what_a_java_says_besides_is_not_its_version(tmp_path: Path) -> None:
    said = 'openjdk version "17.0.2" 2022-01-18'
    java = java_that_says(tmp_path, f'Picked up JAVA_TOOL_OPTIONS: -Dversion="8"\n{said}\nOpenJDK Runtime Environment')
    assert (version_line(java), feature_version(java)) == (said, 17)


CRASH = """echo 'openjdk version "11.0.22"' >&2; kill -SEGV $$"""


@pytest.mark.parametrize("script", ["echo 'something else' >&2", "", "echo 'no room in here' >&2; exit 1", CRASH])
def test_a_java_that_crashes_or_does_not_say_is_of_no_known_age(script: str, tmp_path: Path) -> None:
    java = fake_java(tmp_path, script)
    assert (version_line(java), feature_version(java)) == (None, None)
    refuse_old(java, "Ours", REMEDY)


def test_what_is_no_program_is_of_no_known_age(tmp_path: Path) -> None:
    assert feature_version(str(tmp_path / "nowhere")) is None
    (tmp_path / "java").write_bytes(b"\x7fELF")
    (tmp_path / "java").chmod(0o755)
    assert feature_version(str(tmp_path / "java")) is None


def test_a_java_that_hangs_is_of_no_known_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.java._TIMEOUT_S", 0.1)
    assert feature_version(fake_java(tmp_path, "exec sleep 600")) is None


@pytest.mark.parametrize(
    ("said", "feature"), [('openjdk version "16.0.2" 2021-07-20', 16), ('java version "1.8.0_402"', 8)]
)
def test_a_java_that_is_too_old_is_refused_with_its_place(said: str, feature: int, tmp_path: Path) -> None:
    java = java_that_says(tmp_path, said)
    with pytest.raises(EnvironmentFault) as refused:
        refuse_old(java, "Ours", REMEDY)
    assert str(refused.value) == f"Java {feature} ({java}) is too old for Ours. Get one."


@pytest.mark.parametrize("said", ['openjdk version "17" 2021-09-14', 'openjdk version "22-ea" 2024-03-19'])
def test_a_java_that_is_young_enough_is_taken(said: str, tmp_path: Path) -> None:
    refuse_old(java_that_says(tmp_path, said), "Ours", REMEDY)
