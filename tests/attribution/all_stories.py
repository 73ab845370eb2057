"""Every story that has the frames of a wire tap."""

from __future__ import annotations

from tests.attribution import program_stories, share_stories
from tests.attribution.share_stories import TOLD, told

__all__ = ["TOLD", "program_stories", "share_stories", "told"]
