"""A foreign package of the same name must not be imported silently."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import harness
from seawall_origin import PACKAGES, origin

ROOT = Path(harness.__file__).parents[1]


def seawall_with(path: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; from harness.cli import main; sys.exit(main(['--version']))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), str(ROOT)])}
    command = (sys.executable, "-P", "-c", code)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_every_package_is_found_beside_the_others() -> None:
    assert [origin(package) for package in PACKAGES] == [str(ROOT / package) for package in PACKAGES]
    assert origin("no_such_package") is None


def test_a_shadowed_package_is_named_with_both_places(tmp_path: Path) -> None:
    (tmp_path / "spark_analysis").mkdir()
    (tmp_path / "spark_analysis" / "__init__.py").touch()
    said = seawall_with(tmp_path)
    assert said.returncode == 4
    assert str(tmp_path / "spark_analysis") in said.stderr
    assert str(ROOT / "spark_analysis") in said.stderr


def test_an_unrelated_entry_on_the_path_is_nobodys_business(tmp_path: Path) -> None:
    (tmp_path / "spark_analysis").mkdir()  # a folder of that name without a package loses against a package
    assert seawall_with(tmp_path).returncode == 0


def test_importing_the_entry_point_leaves_ctrl_c_to_the_process() -> None:
    code = "import signal, seawall_entry; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
