"""The container image: what goes into it, and that it runs, as a user without rights, where an engine is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from harness.controls import DiskSpace, Power, WallClocks
from harness.errors import EnvironmentFault
from harness.targets.kafka.disks import NEEDS_SHIM
from tests.ci.jobs import ROOT
from tests.harness.targets.compose.daemon import own_engine

DOCKERFILE = ROOT / "Dockerfile"
BASE, IMAGE = "seawall/image-base", "seawall/image"
PACKAGES = ("bash", "coreutils", "dash", "findutils", "grep", "python3", "python3-venv", "openjdk-17-jre-headless")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
BUILD = ("docker", "build", "--network", "host", "--force-rm")
BROKEN = ("kip-101-double-failover", *("--target", "simulated"), "--set", "replication.truncation=hw")


def test_the_build_gets_what_the_wheel_is_built_of_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {
        *project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"],
        *project["project"]["license-files"],
        project["project"]["readme"],
        *("pyproject.toml", "requirements.lock", "requirements-uv.lock"),
    }
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert lines[1] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == wanted


def test_the_image_runs_as_a_user_without_rights_and_installs_what_is_pinned() -> None:
    text = DOCKERFILE.read_text()
    [before, last] = re.split(r"^FROM \$\{BASE\}$", text, flags=re.MULTILINE)
    assert re.findall(r"^USER (\d+):(\d+)$", last, re.MULTILINE) == [("10001", "10001")]
    assert 'ENTRYPOINT ["seawall"]' in last
    installs = [line for line in before.replace("\\\n", " ").splitlines() if " install " in line]
    assert ["--require-hashes" in installs[0], "--constraint requirements.lock" in installs[1]] == [True, True]
    assert [line.split()[-2:] for line in installs[2:]] == [["--no-deps", "dist/*.whl"]]


def test_the_document_names_what_is_installed_and_what_is_not() -> None:
    _, _, page = (ROOT / "docs/ci.md").read_text().partition("## Container image")
    [installed] = re.findall(r"apt-get install --yes --no-install-recommends ([^\\\n]+)", DOCKERFILE.read_text())
    assert [package for package in installed.split() if f"`{package}`" not in page] == []
    assert not {"gcc", "maven", "docker-cli"} & set(installed.split())
    assert all(lack in page for lack in ("C compiler", "Maven", "Docker client"))
    controls = {DiskSpace: "disk_full", Power: "power_loss", WallClocks: "clock"}
    assert set(controls) == NEEDS_SHIM
    assert [fault for fault in controls.values() if f"`{fault}`" not in page] == []


# ------------------------------------------------------------------------------------------------------ with an engine


def base(scratch: Path) -> None:
    """An image of unpacked Debian packages; its certificates are this machine's."""
    root, archives, status = scratch / "root", scratch / "archives", scratch / "status"
    (archives / "partial").mkdir(parents=True)
    root.mkdir()
    status.touch()
    nowhere = (f"Dir::State::status={status}", f"Dir::Cache::archives={archives}", "Debug::NoLocking=1")
    options = [word for one in (*nowhere, "APT::Sandbox::User=root") for word in ("-o", one)]
    run("apt-get", "-qq", "-y", "--no-install-recommends", *options, "--download-only", "install", *PACKAGES)
    for package in sorted(archives.glob("*.deb")):
        run("dpkg-deb", "--extract", str(package), str(root))
    [java] = (root / "usr/lib/jvm").glob("java-17-*/bin/java")
    (root / "usr/bin/java").symlink_to("/" / java.relative_to(root))
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)
    shutil.copy(CERTIFICATES, root / "etc/ssl/certs")
    run("tar", "--create", "--file", str(scratch / "base.tar"), "--owner=0", "--group=0", "-C", str(root), ".")
    run("docker", "import", "--change", f"ENV SSL_CERT_FILE={CERTIFICATES}", str(scratch / "base.tar"), BASE)


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[:3]}: {(done.stdout + done.stderr)[-2000:]}"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The image, built on a base of our own by an engine of our own, which has no network but this machine's."""
    with pytest.MonkeyPatch.context() as environment:
        try:
            with own_engine() as place:
                environment.setenv("DOCKER_HOST", place)
                try:
                    base(tmp_path_factory.mktemp("base"))
                    run(*BUILD, "--build-arg", f"BASE={BASE}", "--tag", IMAGE, ".")
                    yield IMAGE
                finally:
                    subprocess.run(("docker", "rmi", "--force", IMAGE, BASE), capture_output=True, check=False)
                    run("docker", "image", "prune", "--force")
        except EnvironmentFault as missing:
            pytest.skip(str(missing))


def seawall(*words: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    command = ("docker", "run", "--rm", *options, IMAGE, *words)
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)


@pytest.mark.nightly("builds an image of more than a GB, and fetches what goes into it")
def test_the_image_finds_nothing_missing_and_runs_without_a_network_as_any_user(image: str) -> None:
    alone = ("--network", "none")
    for options in (alone, (*alone, "--user", "12345:12345"), (*alone, "--init", "--read-only", "--tmpfs", "/tmp")):
        doctor = seawall("doctor", options=options)
        assert doctor.returncode == 0, doctor.stdout
        assert "The built-in cluster and the Spark check work here." in doctor.stdout
    assert seawall("simulate", "--seeds", "3", options=alone).returncode == 0
    command = ("docker", "run", "--rm", *alone, "--entrypoint", "id", image)
    who = subprocess.run(command, capture_output=True, text=True, check=True)
    assert who.stdout.startswith("uid=10001(seawall)")


@pytest.mark.nightly("builds an image of more than a GB, and fetches what goes into it")
@pytest.mark.usefixtures("image")
def test_a_loss_in_a_container_ends_with_1_and_spark_agrees(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    options = ("--network", "host", "--volume", f"{tmp_path}:/work")
    said = seawall("run", *BROKEN, "--seed", "7", options=options)
    assert said.returncode == 1, said.stderr
    assert "lost-write" in said.stdout
    assert "did not start" not in said.stderr
    [report] = tmp_path.glob("runs/*/*/report.html")
    assert report.stat().st_uid == 10001


@pytest.mark.nightly("builds an image of more than a GB, and fetches what goes into it")
@pytest.mark.usefixtures("image")
@pytest.mark.parametrize("options", [(), ("--init",)], ids=["as process 1", "below an init"])
def test_random_chaos_in_a_container_detects_a_broken_cluster_and_passes_another(options: Sequence[str]) -> None:
    chaos = ("run", "random-chaos", "--duration-s", "5", "--seed", "1", "--engine", "reference")
    alone = ("--network", "none", *options)
    sound = seawall(*chaos, options=alone)
    assert sound.returncode in {0, 2}, sound.stdout + sound.stderr  # a busy machine may show too little
    broken = seawall(*chaos, "--set", "replication.bugs=ack_on_append", options=alone)
    assert broken.returncode == 1, broken.stdout + broken.stderr
