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

_ASKED = re.compile(r"/v[\d.]+/(?P<kind>containers|volumes|networks)(/(?P<name>[^/]+?))?(/(?P<what>json|rename))?")
_STATES = {True: "running", False: "exited"}


class ScriptedEngine(ThreadingMixIn, UnixStreamServer):
    """Lists things and removes them, makes and renames containers; one called ``stuck`` cannot be removed.

    Attributes:
        things: ``containers``, ``volumes`` and ``networks``, each with its labels by its name.
        runs: whether the containers do.
        making: containers that are being made, whose names are taken: how often one still has to be asked for its
            name until it is there, with a volume that has no labels.
        used: how often the volumes still refuse to be removed, because they are used.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), _Answering)
        self.things: dict[str, dict[str, Labels]] = {"containers": {}, "volumes": {}, "networks": {}}
        self.runs = True
        self.making: dict[str, int] = {}
        self.used = 0

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
        wanted = json.loads(parse_qs(place.query)["filters"][0])
        found = [
            self.server.described(one, labels) for one, labels in things.items() if _is_wanted(one, labels, wanted)
        ]
        return self._answer({"Volumes": found} if kind == "volumes" else found)

    def do_DELETE(self) -> None:
        """Removal."""
        asked = _ASKED.fullmatch(urlsplit(self.path).path)
        assert asked is not None
        if asked["kind"] == "volumes" and self.server.used:
            self.server.used -= 1
            return self._answer({"message": "volume is in use"}, 409)
        if asked["name"].startswith("stuck"):
            return self._answer({"message": f"{asked['name']} cannot be removed"}, 500)
        del self.server.things[asked["kind"]][asked["name"]]
        return self._answer({})

    def do_POST(self) -> None:
        """A container made, or renamed."""
        place = urlsplit(self.path)
        asked, names = _ASKED.fullmatch(place.path), parse_qs(place.query).get("name", ["unnamed"])
        assert asked is not None
        containers = self.server.things["containers"]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if asked["what"] != "rename":
            containers[names[0]] = json.loads(body)["Labels"]
            return self._answer({"Id": names[0], "Warnings": []}, 201)
        if names[0] in containers or self._is_being_made(names[0]):
            return self._answer({"message": f"{names[0]} is already in use"}, 409)
        return self._answer({}, 204)

    def _is_being_made(self, name: str) -> bool:
        if name not in self.server.making:
            return False
        self.server.making[name] -= 1
        if self.server.making[name] <= 0:
            del self.server.making[name]
            project = name.rpartition("-")[0]
            self.server.things["containers"][name] = {"com.docker.compose.project": project}
            self.server.things["volumes"][f"{project}_data"] = {}
        return True

    def address_string(self) -> str:
        """Who asks: sockets of a file have no names."""
        return "somebody"

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""

    def _answer(self, told: object, status: int = 200) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(told).encode())


def _is_wanted(name: str, labels: Labels, wanted: Mapping[str, Any]) -> bool:
    return all(one in name for one in wanted.get("name", ())) and _bears(labels, wanted.get("label", []))


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
