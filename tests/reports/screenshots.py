"""Screenshots of pages: how they are taken, made small, and compared with approved ones."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops

DIRECTORY = Path(__file__).parent / "approved"
ORIGIN = DIRECTORY / "origin.json"
"""What the approved screenshots were taken with."""

MOST_BYTES = 150_000
"""Of an approved screenshot."""

TALLEST = 4_000
"""Pixels of a page from its top that are looked at."""

_SHRUNK = 2
_COLOURS = 32
_BLOCK = 10
_OFF = 14
"""How much a block may differ, of 255 on average: antialiasing stays below, text that is a few pixels off does not."""

_MOST_BLOCKS = 2

_PROBE = """<!DOCTYPE html><p style='font: 15px system-ui, "Segoe UI", "Liberation Sans", sans-serif'>
The leader&#39;s high watermark: 0123456789 <b>VIOLATION</b></p>
<p style='font: 13px ui-monospace, "Liberation Mono", "DejaVu Sans Mono", monospace'>--seed 0123456789</p>"""


def taken(page: Any) -> Image.Image:
    """The page from its top, at half its size, so that it is small and antialiasing weighs little."""
    whole = Image.open(io.BytesIO(page.screenshot(full_page=True, animations="disabled"))).convert("RGB")
    part = whole.crop((0, 0, whole.width, min(whole.height, TALLEST)))
    return part.resize((part.width // _SHRUNK, part.height // _SHRUNK), Image.Resampling.BOX)


def approve(name: str, width: int, seen: Image.Image) -> None:
    """Replace an approved screenshot, in few colours."""
    palette = seen.quantize(_COLOURS, Image.Quantize.MEDIANCUT)
    seen.quantize(palette=palette, dither=Image.Dither.NONE).save(path_of(name, width), optimize=True)


def path_of(name: str, width: int) -> Path:
    """The file of an approved screenshot."""
    return DIRECTORY / f"{name}-{width}.png"


def approved(name: str, width: int) -> Image.Image:
    """An approved screenshot."""
    with Image.open(path_of(name, width)) as opened:
        return opened.copy()


def complaint(wanted: Image.Image, seen: Image.Image) -> str | None:
    """What differs; None: nothing that a reader would see."""
    if wanted.size != seen.size:
        return f"the page is {seen.size[0]}x{seen.size[1]} instead of {wanted.size[0]}x{wanted.size[1]}"
    blocks = _blocks(wanted, seen)
    wrong = [(index % blocks.width, index // blocks.width) for index, one in enumerate(blocks.tobytes()) if one > _OFF]
    if len(wrong) <= _MOST_BLOCKS:
        return None
    places = ", ".join(f"({x * _BLOCK * _SHRUNK}, {y * _BLOCK * _SHRUNK})" for x, y in wrong[:5])
    return f"{len(wrong)} blocks of {_BLOCK * _SHRUNK} pixels differ, the first at {places}"


def _blocks(wanted: Image.Image, seen: Image.Image) -> Image.Image:
    alike = seen.quantize(palette=wanted, dither=Image.Dither.NONE).convert("RGB")
    off = ImageChops.difference(wanted.convert("RGB"), alike).convert("L")
    size = (-(-off.width // _BLOCK), -(-off.height // _BLOCK))
    padded = Image.new("L", (size[0] * _BLOCK, size[1] * _BLOCK))
    padded.paste(off)
    return padded.resize(size, Image.Resampling.BOX)


def difference(wanted: Image.Image, seen: Image.Image) -> Image.Image:
    """The approved one, the seen one, and where they differ, side by side."""
    pair = [wanted.convert("RGB"), seen.convert("RGB")]
    pair.append(ImageChops.difference(*pair))
    sheet = Image.new("RGB", (sum(one.width for one in pair), max(one.height for one in pair)))
    for number, one in enumerate(pair):
        sheet.paste(one, (sum(before.width for before in pair[:number]), 0))
    return sheet


def origin(browser: Any) -> dict[str, str]:
    """What decides how text looks: the browser's version, and a digest of text in the fonts of the pages."""
    context = browser.new_context(viewport={"width": 600, "height": 120})
    page = context.new_page()
    page.set_content(_PROBE)
    pixels = Image.open(io.BytesIO(page.screenshot())).convert("RGB").tobytes()
    context.close()
    return {"chromium": browser.version, "text": hashlib.sha256(pixels).hexdigest()[:16]}


def strangeness(browser: Any) -> str | None:
    """Why this machine's screenshots cannot be compared with the approved ones; None: they can."""
    if not ORIGIN.exists():
        return "no screenshot was approved"
    known, mine = json.loads(ORIGIN.read_text()), origin(browser)
    wrong = [f"{name} is {mine[name]}, not {known[name]}" for name in mine if mine[name] != known[name]]
    return f"approved on another machine: {'; '.join(wrong)}" if wrong else None
