"""The types of single values of a plan: durations, seeds, settings, and texts that YAML takes for numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from harness.scenario import MAX_SEED

MOST_SEEDS = 10_000
"""The most seeds of one entry of a plan."""

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")
_RANGE = re.compile(r"(\d{1,19})\.\.(\d{1,19})")


def seconds(written: object) -> float:
    """``"1h30m"``, ``"90s"`` or a number of seconds, in seconds.

    Raises:
        ValueError: it is neither, or not greater than 0.
    """
    found: float | None = None
    if isinstance(written, int | float) and not isinstance(written, bool):
        found = float(written)
    elif isinstance(written, str) and written and (parts := _DURATION.fullmatch(written)):
        found = sum(float(part or 0) * unit for part, unit in zip(parts.groups(), (3600, 60, 1), strict=True))
    if found is None or not 0 < found <= 7 * 24 * 3600:
        raise ValueError(f"{written!r} is no duration; write 90s, 15m, 1h30m or a number of seconds, up to 7 days.")
    return found


Duration = Annotated[
    float,
    BeforeValidator(seconds),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": r"^(\d+(\.\d+)?h)?(\d+(\.\d+)?m)?(\d+(\.\d+)?s)?$", "minLength": 2},
            ],
            "description": "90s, 15m, 1h30m, or a number of seconds",
        }
    ),
]


def _text(written: object) -> object:
    if isinstance(written, int | float) and not isinstance(written, bool):
        raise ValueError(f"YAML takes it for the number {written!r}, as it takes 0.10 for 0.1; put it into quotes.")
    return written


Text = Annotated[str, BeforeValidator(_text), Field(min_length=1)]


class Seeds(BaseModel):
    """The seeds of an entry: given ones, and how many are drawn for each series from the identifier of the night."""

    model_config = ConfigDict(frozen=True)

    given: tuple[int, ...] = ()
    draw: int = 0


def _seeds(written: object) -> object:
    match written:
        case Seeds():
            return written
        case {"draw": int() as number, **others} if not others and not isinstance(number, bool):
            found = Seeds(draw=number)
        case list() if all(isinstance(one, int) and not isinstance(one, bool) for one in written):
            found = Seeds(given=tuple(dict.fromkeys(written)))
        case str() if ends := _RANGE.fullmatch(written):
            found = _range(written, int(ends[1]), int(ends[2]))
        case _:
            raise ValueError(f"{written!r} are no seeds; write [7, 8], 1..20 or {{draw: 5}}.")
    if not 0 < len(found.given) + found.draw <= MOST_SEEDS:
        raise ValueError(f"{written!r} are not between 1 and {MOST_SEEDS:,} seeds.")
    if wrong := [seed for seed in found.given if not 0 <= seed < MAX_SEED]:
        raise ValueError(f"seed {wrong[0]} is out of range; seeds are 0 or more and less than 2^63.")
    return found


def _range(written: str, first: int, last: int) -> Seeds:
    if not 0 <= last - first < MOST_SEEDS:
        raise ValueError(f"{written!r} is no range of 1 to {MOST_SEEDS:,} seeds; both ends belong to it.")
    return Seeds(given=tuple(range(first, last + 1)))


SomeSeeds = Annotated[
    Seeds,
    BeforeValidator(_seeds),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
                {"type": "string", "pattern": r"^\d+\.\.\d+$"},
                {
                    "type": "object",
                    "properties": {"draw": {"type": "integer", "minimum": 1, "description": "How many seeds."}},
                    "required": ["draw"],
                    "additionalProperties": False,
                },
            ],
            "description": "a list, a range FIRST..LAST with both ends, or {draw: N} from the identifier of the night",
        }
    ),
]


def _as_text(key: str, written: object) -> str:
    match written:
        case bool():
            return str(written).lower()
        case float() if key.startswith("settings."):
            raise ValueError(f"{key}: YAML takes it for the number {written!r}; put it into quotes.")
        case int() | float() | str():
            return str(written)
        case list():
            return f"[{','.join(_as_text(key, one) for one in written)}]"
        case _:
            raise ValueError(f"{key}: {written!r} is no number, flag, text or list of them.")


def _settings(written: object) -> object:
    alternatives = [written] if isinstance(written, Mapping) else written
    if not isinstance(alternatives, list | tuple) or not all(isinstance(one, Mapping) for one in alternatives):
        raise ValueError(f"{written!r} is no mapping of --set keys to values, and no list of such mappings.")
    return tuple({key: _as_text(key, value) for key, value in one.items()} for one in alternatives)


_VALUE: dict[str, Any] = {"type": ["string", "number", "boolean", "array"]}
_ONE_SETTINGS: dict[str, Any] = {"type": "object", "additionalProperties": _VALUE}

Settings = Annotated[
    tuple[Mapping[str, str], ...],
    BeforeValidator(_settings),
    Field(min_length=1),
    WithJsonSchema(
        {
            "anyOf": [_ONE_SETTINGS, {"type": "array", "items": _ONE_SETTINGS, "minItems": 1}],
            "description": "keys and values of --set; each mapping of a list is an alternative with cells of its own",
        }
    ),
]


def _listed(written: object) -> object:
    return tuple(written) if isinstance(written, list) else (written,)


Durations = Annotated[
    tuple[Duration, ...],
    BeforeValidator(_listed),
    Field(min_length=1),
]
