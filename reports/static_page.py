"""Renders a template as a self-contained page, whose policy allows nothing but its own style and script."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from harness.scratch import unfinished

ROWS_AT_ONCE: Final = 100
"""A long list is tables of so many rows, of which a browser lays out those that are on the screen."""

_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def write(path: Path, template: str, **context: Any) -> None:
    """Replace a page of nights or of a comparison at once; they share ``index.css`` and ``index.js``.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    page = _rendered(template, context)
    with unfinished(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _rendered(template: str, context: dict[str, Any]) -> str:
    environment = Environment(loader=PackageLoader("reports"), autoescape=True, undefined=StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    style, script = (f"\n{_own(name)}\n" for name in ("index.css", "index.js"))
    policy = f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}"
    page = environment.get_template(template).render(
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        rows_at_once=ROWS_AT_ONCE,
        policy=f"{policy}; base-uri 'none'; form-action 'none'",
        **context,
    )
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", page)


def _own(name: str) -> str:
    return resources.files("reports").joinpath(f"templates/{name}").read_text(encoding="utf-8").strip()


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
