"""One request that the HTTP API answers, described by the types of its handler."""

import re
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import msgspec


class ApiEndpoint(NamedTuple):
    """One request that the API answers."""

    method: str
    path: str
    function: Callable[..., Any]
    """It takes a `PageRequest` and, as far as it names them, `query` and `body`."""

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def summary(self) -> str:
        return (self.function.__doc__ or "").strip().splitlines()[0]

    @property
    def path_names(self) -> list[str]:
        return re.findall(r"{(\w+)}", self.path)

    @property
    def query(self) -> type[msgspec.Struct] | None:
        return self._hints.get("query")

    @property
    def body(self) -> type[msgspec.Struct] | None:
        return self._hints.get("body")

    @property
    def answer(self) -> Any:
        return self._hints["return"]

    @property
    def _hints(self) -> dict[str, Any]:
        return _hints_of(self.function)


@cache
def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of a handler, which every request needs."""
    return typing.get_type_hints(function, include_extras=True)
