"""A plugin whose import fails."""

from __future__ import annotations

raise RuntimeError("the toy has not been wound up")
