"""Validates data by pydantic models, and turns a refusal into one sentence for the user.

``faults[1]: unknown key 'free_byte'; did you mean 'free_bytes'?``
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import is_dataclass
from reprlib import Repr
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, RootModel, ValidationError
from pydantic_core import ErrorDetails

from harness.errors import UsageError
from harness.json_schema import Shape
from harness.spelling import closest

M = TypeVar("M", bound=BaseModel)
Content = TypeVar("Content")

_MAX_VALUE_CHARS = 60

_SHOWN = Repr()
"""Shows only the beginning of a value, as its whole ``repr`` may not fit into memory."""
_SHOWN.maxlevel, _SHOWN.maxstring, _SHOWN.maxother = 4, _MAX_VALUE_CHARS, _MAX_VALUE_CHARS
_SHOWN.maxdict = _SHOWN.maxlist = _SHOWN.maxlong = 20


class Document(RootModel[Content], Generic[Content]):
    """A file whose content has the types of ``Content``; made ready at the first use, as most processes read few."""

    model_config = ConfigDict(defer_build=True)


def validated(model: type[M], data: object, path: str, *, whole: str = "the scenario") -> M:
    """``data``, plain data as YAML yields it, as a ``model``.

    Values are checked strictly (``"3"`` is no number), but lists may stand for tuples, as in JSON. ``path`` is the
    place of the data, the prefix of every message (``faults[1]``); it may be empty, and ``whole`` then names the data.

    Raises:
        UsageError: names the first key or value at fault.
    """
    try:
        return model.model_validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as refusal:
        # A key that is spelled wrong is refused *and* missing; only the first helps.
        first = min(refusal.errors(), key=lambda error: error["type"] != "extra_forbidden")
        raise UsageError(_sentence(model, first, path, whole)) from None


def shortened(value: object) -> str:
    """The ``repr`` of a value from a file, in at most 60 characters; takes no longer for a large one."""
    return _SHOWN.repr(value)[:_MAX_VALUE_CHARS]


def _sentence(model: type[BaseModel], error: ErrorDetails, path: str, whole: str) -> str:
    *parents, last = error["loc"] or ("",)
    match error["type"]:
        case "extra_forbidden":
            known = _keys(_model_at(model, parents))
            return f"{_join(path, parents, whole)}: unknown key {str(last)!r}; {closest(str(last), known)}"
        case "missing":
            return f"{_join(path, parents, whole)}: {str(last)!r} is missing."
        case "value_error":
            return f"{_join(path, error['loc'], whole)}: {error['ctx']['error']}"
        case _:
            shown = shortened(error["input"])
            return f"{_join(path, error['loc'], whole)}: {shown} is refused: {_lower_first(error['msg'])}."


def _join(path: str, location: Iterable[int | str], whole: str) -> str:
    for part in location:
        path = f"{path}[{part}]" if isinstance(part, int) else f"{path}.{part}".lstrip(".")
    return path or whole


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _keys(model: type) -> list[str]:
    return [*_annotations(model)]


def _annotations(model: type) -> dict[str, Any]:
    """The annotations of the keys of a model or a dataclass."""
    if issubclass(model, BaseModel):
        return {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    return get_type_hints(model, include_extras=True)


def _model_at(model: type, location: Iterable[int | str]) -> type:
    """The innermost model on the way from ``model`` along ``location``."""
    if issubclass(model, RootModel):
        model = _model_within(model.model_fields["root"].annotation) or model
    for part in location:
        known = _annotations(model)
        if part in known:
            model = _model_within(known[str(part)]) or model
    return model


def _model_within(annotation: Any) -> type | None:
    """The model in ``X``, ``X | None``, ``tuple[X, ...]``, ``list[X]``, ``Mapping[str, X]`` or ``Shape(X)``."""
    if isinstance(annotation, Shape):
        return _model_within(annotation.declared)
    if isinstance(annotation, type) and (issubclass(annotation, BaseModel) or is_dataclass(annotation)):
        return annotation
    inner = (*getattr(annotation, "__metadata__", ()), *get_args(annotation))
    found = (_model_within(argument) for argument in inner)
    return next((model for model in found if model is not None), None)
