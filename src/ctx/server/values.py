"""Values as JSON has them."""

import os
from typing import Any


def plain(value: Any) -> Any:
    """Named tuples and structs become objects, and paths that are not UTF-8 are escaped."""
    match value:
        case tuple() if hasattr(value, "_fields"):
            return {name: plain(getattr(value, name)) for name in value._fields}
        case _ if hasattr(value, "__struct_fields__"):
            return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
        case str():
            return os.fsencode(value).decode("utf-8", "backslashreplace")
        case bytes():
            return value.hex()
        case None | int() | float():
            return value
        case _:
            return str(value)
