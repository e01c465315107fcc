"""Fields of JSON that a host wrote. Whatever it contains, nothing here fails."""

import json
from collections.abc import Mapping
from typing import Any


def parsed(text: str | bytes) -> Any:
    """A text of JSON; None if it is something else, or nested too deeply."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def fields_of(value: object) -> Mapping[str, Any]:
    """A JSON object; empty if it is something else."""
    return value if isinstance(value, Mapping) else {}


def text_of(fields: object, *names: str) -> str:
    """The first of these fields that contains text; empty if there is none."""
    values = map(fields.get, names) if isinstance(fields, Mapping) else ()
    return next((value for value in values if isinstance(value, str) and value), "")


def nonblank_text_of(fields: Mapping[str, Any], *names: str) -> str:
    """The first of these fields with more than white space; empty if there is none."""
    values = map(fields.get, names)
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def plain_text_of(fields: Mapping[str, Any], name: str) -> str:
    """The text of a field, as a file can store it."""
    value = fields.get(name)
    return plain(value) if isinstance(value, str) else ""


def plain(text: str) -> str:
    """JSON can contain lone surrogates, which no file can store."""
    return text.encode("utf-8", "replace").decode("utf-8")


def string_in(data: bytes) -> str:
    """The text of a JSON string; empty if it is something else."""
    text = parsed(data)
    return text if isinstance(text, str) else ""
