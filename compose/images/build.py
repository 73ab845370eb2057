"""Builds images where none can be pulled, and those that nobody publishes.

``python compose/images/build.py NAME...`` with these names:

====================  ==================================================================================================
``base``              a small Debian from the packages that ``apt-get`` can reach: what the other images are built on
                      once it is there. Until then they are built on ``debian:12-slim``, which Docker pulls.
``tools``             what seawall runs beside the brokers: a shell and iptables
``toxiproxy``         the Toxiproxy server, compiled from its Go module
``kafka:VERSION``     a release of Kafka on this machine's Java, that takes its configuration as ``apache/kafka`` does
``zookeeper:VERSION`` the ZooKeeper that came with that release of Kafka
====================  ==================================================================================================

The images are called ``seawall/NAME``, or ``seawall/NAME:VERSION``. Needed are the docker command and, by what is to be
built, apt-get with its lists up to date, go, or a JDK and the jars of Kafka, which are fetched as ``seawall kafka
fetch`` does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.errors import EnvironmentFault, SeawallError, UsageError
from harness.targets.kafka.fetching import fetch

HERE = Path(__file__).parent
PREFIX = "seawall"
BASE, PULLED_BASE = f"{PREFIX}/base", "debian:12-slim"
TOXIPROXY, TOXIPROXY_VERSION = "github.com/Shopify/toxiproxy/v2", "2.12.0"
PACKAGES = ("bash", "coreutils", "dash", "findutils", "grep", "iptables", "libstdc++6", "sed", "zlib1g")
MODULES = ("java.se", "jdk.attach", "jdk.crypto.ec", "jdk.jcmd", "jdk.management", "jdk.management.agent", "jdk.net")
MODULES += ("jdk.security.auth", "jdk.security.jgss", "jdk.unsupported", "jdk.zipfs")
_THERE_ARE = "There are base, tools, toxiproxy, kafka:VERSION and zookeeper:VERSION."


def main(names: Sequence[str]) -> None:
    """Build the images called ``names``, in that order.

    Raises:
        UsageError: one of them is no image, or there is no name.
    """
    if not names:
        raise UsageError("which images are to be built?", _THERE_ARE)
    for name in names:
        kind, _, version = name.partition(":")
        with tempfile.TemporaryDirectory() as scratch:
            build(kind, version, Path(scratch))


def build(kind: str, version: str, scratch: Path) -> None:
    """Build one image, with ``scratch`` for what goes into it.

    Raises:
        UsageError: there is no such image.
    """
    match kind, version:
        case "base", "":
            _base(scratch)
        case "tools", "":
            _image("tools", scratch, {"BASE": _found_base()})
        case "toxiproxy", "":
            _toxiproxy(scratch)
            _image("toxiproxy", scratch)
        case "kafka", version if version:
            shutil.copytree(fetch(version).home / "libs", scratch / "libs")
            _java(scratch / "java")
            _image("kafka", scratch, {"BASE": _found_base(), "KAFKA_VERSION": version}, version)
        case "zookeeper", version if version:
            build("kafka", version, scratch)
            _image("zookeeper", scratch, {"BASE": f"{PREFIX}/kafka:{version}"}, version)
        case _:
            raise UsageError(
                f"there is no image {kind}{':' if version else ''}{version}.",
                _THERE_ARE,
            )


def _base(scratch: Path) -> None:
    """Nothing is configured, only unpacked; what Debian chooses among alternatives is chosen here."""
    archives, root, status = scratch / "archives", scratch / "root", scratch / "status"
    (archives / "partial").mkdir(parents=True)
    root.mkdir()
    status.touch()
    nowhere = (
        f"Dir::State::status={status}",
        f"Dir::Cache::archives={archives}",
        "APT::Sandbox::User=root",
        "Debug::NoLocking=1",
    )
    options = [word for option in nowhere for word in ("-o", option)]
    _run("apt-get", "-qq", "-y", "--no-install-recommends", *options, "--download-only", "install", *PACKAGES)
    for package in sorted(archives.glob("*.deb")):
        _run("dpkg-deb", "--extract", str(package), str(root))
    for name in ("iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"):
        (root / "usr/sbin" / name).symlink_to("xtables-nft-multi")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    (root / "etc/group").write_text("root:x:0:\n")
    shutil.rmtree(root / "usr/share/doc")
    packed = scratch / "base.tar"
    _run("tar", "--create", "--file", str(packed), "--owner=0", "--group=0", "--directory", str(root), ".")
    _run("docker", "import", "--change", 'CMD ["/bin/bash"]', str(packed), BASE)


def _toxiproxy(place: Path) -> None:
    told = f"-ldflags=-X {TOXIPROXY}.Version={TOXIPROXY_VERSION}"
    program = f"{TOXIPROXY}/cmd/server@v{TOXIPROXY_VERSION}"
    _run("go", "install", told, program, environment={"GOBIN": str(place), "CGO_ENABLED": "0"})


def _java(place: Path) -> None:
    """A runtime cut from the JDK of this machine."""
    _run("jlink", "--add-modules", ",".join(MODULES), "--strip-debug", "--no-man-pages", "--no-header-files",
         "--output", str(place))  # fmt: skip


def _found_base() -> str:
    built = subprocess.run(("docker", "image", "inspect", BASE), capture_output=True, check=False).returncode == 0
    return BASE if built else PULLED_BASE


def _image(kind: str, context: Path, arguments: Mapping[str, str] | None = None, version: str = "latest") -> None:
    shutil.copytree(HERE / kind, context, dirs_exist_ok=True)
    given = [word for name, value in (arguments or {}).items() for word in ("--build-arg", f"{name}={value}")]
    _run("docker", "build", "--quiet", "--network", "host", "--tag", f"{PREFIX}/{kind}:{version}", *given, str(context))


def _run(*words: str, environment: Mapping[str, str] | None = None) -> None:
    try:
        done = subprocess.run(words, check=False, env={**os.environ, **(environment or {})})
    except FileNotFoundError:
        raise EnvironmentFault(f"an image cannot be built: there is no {words[0]} on the PATH.") from None
    if done.returncode != 0:
        raise EnvironmentFault(f"an image cannot be built: {words[0]} {words[1]} failed with {done.returncode}.")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except SeawallError as error:
        sys.exit(str(error))
