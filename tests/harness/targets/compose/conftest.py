"""The Docker engine of the tests that need one: this machine's, or else one of their own; without it they skip."""

from __future__ import annotations

import fcntl
import gc
import subprocess
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest
import yaml
from docker.errors import ImageNotFound

from harness.errors import EnvironmentFault
from harness.targets.compose import compose_tool
from harness.targets.compose.project import TOXIPROXY_IMAGE, Project, connected
from harness.targets.compose.removal import removed
from tests.harness.targets.compose.daemon import locked, own_engine

ANOTHER_PROJECT = pytest.mark.nightly(
    "starts containers for a case of its own; by day test_target has a project with a broker, a fault and its probe"
)
_ROOT = Path(__file__).parents[4]
_BUILD = Path("compose", "images", "build.py")
_BUILD_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Engine:
    """A Docker engine; one that is the tests' ``own`` may be filled with images."""

    client: docker.DockerClient
    own: bool

    def need(self, *images: str) -> None:
        """Skip the test unless these images of ours, called ``base``, ``tools`` or ``kafka:4.1.0``, are there."""
        for image in images:
            if self.own:
                with locked(Path(tempfile.gettempdir(), "seawall-images.lock"), fcntl.LOCK_EX):
                    if not self._has(image):
                        _build(image)
            elif not self._has(image):
                pytest.skip(f"image seawall/{image} is missing: python {_BUILD} base {image}")

    def need_compose(self) -> tuple[str, ...]:
        """The words that calls of the compose tool begin with; without one, which an engine may be, the test skips."""
        try:
            return compose_tool.command()
        except EnvironmentFault as missing:
            pytest.skip(str(missing))

    def _has(self, image: str) -> bool:
        try:
            self.client.images.get(f"seawall/{image}")
        except ImageNotFound:
            return False
        return True

    @contextmanager
    def project(self, directory: Path, services: Mapping[str, Any], **more: Any) -> Iterator[Project]:
        """A project of these services, each of which is the node called as its last letter, while it is needed."""
        name, file = f"seawall-test-{uuid.uuid4().hex[:8]}", directory / "compose.yml"
        file.write_text(yaml.safe_dump({"services": dict(services), **more}))
        words = (*self.need_compose(), "-f", str(file), "-p", name)
        project = Project(self.client, name, {service[-1]: [service] for service in services})
        try:
            subprocess.run((*words, "up", "-d"), check=True, capture_output=True)
            yield project
        finally:
            removed(self.client, name)


def _build(image: str) -> None:
    done = subprocess.run(
        (sys.executable, str(_BUILD), image),
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=_BUILD_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"image seawall/{image} cannot be built: {done.stderr.strip().splitlines()[-1]}")


@pytest.fixture(params=compose_tool.TOOLS, ids=" ".join)
def tool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Every compose tool in turn, as if it were the only one; those that are not on this machine are skipped."""
    words: tuple[str, ...] = request.param
    if not compose_tool.is_installed(words):
        pytest.skip(f"`{' '.join(words)}` is not on this machine")
    monkeypatch.setattr(compose_tool, "command", lambda: words)
    return words


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The engine. While it is there, the environment variables of this process tell every tool so."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as environment:
        own = _is_missing()
        if own:
            try:
                environment.setenv("DOCKER_HOST", stack.enter_context(own_engine()))
            except EnvironmentFault as missing:
                pytest.skip(str(missing))
        environment.setenv(TOXIPROXY_IMAGE, "seawall/toxiproxy")
        found = Engine(stack.enter_context(closing(connected())), own)
        if own:
            found.need("base")
        yield found


def _is_missing() -> bool:
    """Whether no engine answers. The docker library does not close a socket that it could not connect."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            connected().close()
            missing = False
        except EnvironmentFault:
            missing = True
        gc.collect()
    return missing
