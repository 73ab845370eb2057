"""Just enough of a Docker engine, on a socket, to see what is removed from one where there is none."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Labels = Mapping[str, str]

_ASKED = re.compile(r"/v[\d.]+/(?P<kind>containers|volumes|networks)(/(?P<name>[^/]+))?(/json)?")
_STATES = {True: "running", False: "exited"}


class ScriptedEngine(ThreadingMixIn, UnixStreamServer):
    """Lists things by their labels and removes them; a container called ``stuck`` cannot be removed.

    Attributes:
        things: ``containers``, ``volumes`` and ``networks``, each with its labels by its name.
        runs: whether the containers do.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), _Answering)
        self.things: dict[str, dict[str, Labels]] = {"containers": {}, "volumes": {}, "networks": {}}
        self.runs = True

    def add(self, project: str, owner: str) -> None:
        """A project of a container, a volume, and a network, which has no label of the overlay's."""
        composed = {"com.docker.compose.project": project}
        ours = {**composed, "seawall.run": project, "seawall.owner": owner}
        self.things["containers"][f"{project}_kafka_1"] = ours
        self.things["volumes"][f"{project}_disk"] = ours
        self.things["networks"][f"{project}_default"] = composed

    @property
    def left(self) -> list[str]:
        """The names of all that is there."""
        return [name for things in self.things.values() for name in things]

    def described(self, name: str, labels: Labels) -> Mapping[str, Any]:
        """A thing, whatever it is, as the engine would describe it."""
        state = {"Status": _STATES[self.runs]}
        return {"Id": name, "Name": name, "Labels": labels, "Config": {"Labels": labels}, "State": state}


class _Answering(BaseHTTPRequestHandler):
    server: ScriptedEngine

    def do_GET(self) -> None:
        """Lists and descriptions."""
        place = urlsplit(self.path)
        asked = _ASKED.fullmatch(place.path)
        if asked is None:
            return self._answer({"ApiVersion": "1.41"})
        kind, name = asked["kind"], asked["name"]
        things = self.server.things[kind]
        if name in things:
            return self._answer(self.server.described(name, things[name]))
        wanted = json.loads(parse_qs(place.query)["filters"][0])["label"]
        found = [self.server.described(one, labels) for one, labels in things.items() if _bears(labels, wanted)]
        return self._answer({"Volumes": found} if kind == "volumes" else found)

    def do_DELETE(self) -> None:
        """Removal."""
        asked = _ASKED.fullmatch(urlsplit(self.path).path)
        assert asked is not None
        if asked["name"].startswith("stuck"):
            return self._answer({"message": f"{asked['name']} cannot be removed"}, 500)
        del self.server.things[asked["kind"]][asked["name"]]
        return self._answer({})

    def address_string(self) -> str:
        """Who asks: sockets of a file have no names."""
        return "somebody"

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""

    def _answer(self, told: object, status: int = 200) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(told).encode())


def _bears(labels: Labels, wanted: list[str] | str) -> bool:
    return all(
        one.partition("=")[0] in labels and one.partition("=")[2] in ("", labels[one.partition("=")[0]])
        for one in ([wanted] if isinstance(wanted, str) else wanted)
    )


@contextmanager
def scripted_engine(path: Path) -> Iterator[ScriptedEngine]:
    """One that listens at ``path`` for as long as this lasts."""
    with ScriptedEngine(path) as engine:
        threading.Thread(target=engine.serve_forever, daemon=True).start()
        try:
            yield engine
        finally:
            engine.shutdown()
