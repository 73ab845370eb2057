"""Distributions with plugins that a test writes, seen by this process as if they were installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import invalidate_caches
from pathlib import Path

import pytest

import faults
import workloads
from checkers import registry
from harness import plugins
from harness.targets import kinds

REGISTRIES = (faults.KINDS, workloads.KINDS, kinds.KINDS, registry.CHECKERS)

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """``install("name", {"seawall.faults": {"hiccup": "module:Hiccup"}}, module="source")``."""
    here, written = tmp_path / "installed", set[str]()
    here.mkdir()
    monkeypatch.syspath_prepend(str(here))
    monkeypatch.setattr(plugins, "_LOADED", [])

    def distribution(name: str, entries: Mapping[str, Mapping[str, str]], **modules: str) -> None:
        about = here / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [[f"[{group}]", *(f"{one} = {of}" for one, of in own.items())] for group, own in entries.items()]
        (about / "entry_points.txt").write_text("\n".join(line for group in lines for line in group))
        for module, source in modules.items():
            (here / f"{module}.py").write_text(source)
        written.update(modules)
        invalidate_caches()
        _forget()

    _forget()
    yield distribution
    _forget()
    for module in written:
        sys.modules.pop(module, None)


def _forget() -> None:
    """What the registries know of plugins."""
    for one in REGISTRIES:
        vars(one).pop("_plugins", None)
        one._loaded.clear()
    vars(registry.KINDS).pop("_known", None)
