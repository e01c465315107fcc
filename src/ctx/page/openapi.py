"""The OpenAPI document, made from the types of the handlers.

A handler takes its parameters and its body as structs and returns a named tuple, as operations do.
So the document cannot differ from what is checked and sent.
"""

import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

import ctx
from ctx.page.endpoints import ApiEndpoint

_PLAIN = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
}
_ERRORS = {
    "400": "The request is not valid.",
    "401": "The bearer token is missing or wrong.",
    "403": "The store is not trusted, or the request comes from another site.",
    "404": "There is no such thing.",
    "409": "It conflicts with what is stored.",
    "412": "It is not as the client expects.",
    "413": "The body is too large.",
}


class ErrorBody(NamedTuple):
    """What went wrong."""

    code: str
    message: str
    hint: str | None
    detail: str | None = None
    """More lines, such as the position in a query."""


class ErrorAnswer(NamedTuple):
    error: ErrorBody


def document(endpoints: Sequence[ApiEndpoint]) -> dict[str, Any]:
    schemas = _Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ctx",
            "version": ctx.__version__,
            "description": (
                "The memory of this machine. Every request of a program carries the bearer token."
            ),
        },
        "servers": [{"url": "/api/v1"}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": schemas.named,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: ApiEndpoint, schemas: "_Schemas") -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in endpoint.path_names
    ]
    if endpoint.query is not None:
        for field in msgspec.structs.fields(endpoint.query):
            shape = schemas.schema(field.type)
            parameters.append(
                {"name": field.encode_name, "in": "query", "required": field.required}
                | {"schema": shape}
            )
    made: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": parameters,
        "responses": {
            "200": _content("The answer.", schemas.schema(endpoint.answer)),
            **{
                code: _content(words, schemas.schema(ErrorAnswer))
                for code, words in _ERRORS.items()
            },
        },
    }
    if endpoint.body is not None:
        made["requestBody"] = {"required": True, **_json(schemas.schema(endpoint.body))}
    return made


def _content(words: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": words, **_json(schema)}


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


class _Schemas:
    """The schemas of types; those of values with fields are named."""

    def __init__(self) -> None:
        self.named: dict[str, Any] = {}

    def schema(self, hint: Any) -> dict[str, Any]:
        if hint in _PLAIN:
            return dict(_PLAIN[hint])
        if isinstance(hint, typing.NewType):
            return self.schema(hint.__supertype__)
        if isinstance(hint, type) and hasattr(hint, "_fields"):
            return self._tuple(hint)
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            return self._struct(hint)
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated:
            return self._annotated(hint)
        if origin is typing.Literal:
            return {"enum": list(inner)}
        if origin in (types.UnionType, typing.Union):
            return {"anyOf": [self.schema(each) for each in inner]}
        if origin in (list, tuple, set, frozenset) or _is(origin, Sequence):
            return {"type": "array", "items": self.schema(inner[0]) if inner else {}}
        if origin is dict or _is(origin, Mapping):
            return {
                "type": "object",
                "additionalProperties": self.schema(inner[1]) if inner else {},
            }
        if isinstance(hint, type) and issubclass(hint, str):
            return {"type": "string"}
        return {}

    def _annotated(self, hint: Any) -> dict[str, Any]:
        inner, *limits = typing.get_args(hint)
        schema = self.schema(inner)
        is_list = schema.get("type") == "array"
        for limit in limits:
            if isinstance(limit, msgspec.Meta):
                names = {
                    "minimum": limit.ge,
                    "maximum": limit.le,
                    "minItems" if is_list else "minLength": limit.min_length,
                    "maxItems" if is_list else "maxLength": limit.max_length,
                    "pattern": limit.pattern,
                }
                schema |= {name: value for name, value in names.items() if value is not None}
        return schema

    def _tuple(self, shape: Any) -> dict[str, Any]:
        name = shape.__name__
        if name not in self.named:
            self.named[name] = {}
            hints = typing.get_type_hints(shape)
            self.named[name] = {
                "type": "object",
                "properties": {each: self.schema(hints[each]) for each in shape._fields},
                "required": list(shape._fields),
            }
        return {"$ref": f"#/components/schemas/{name}"}

    def _struct(self, shape: type[msgspec.Struct]) -> dict[str, Any]:
        name = shape.__name__
        if name not in self.named:
            self.named[name] = {}
            fields = msgspec.structs.fields(shape)
            settings = shape.__struct_config__
            # The field that tells the members of a union apart is not among the fields.
            kind = {settings.tag_field: {"const": settings.tag}} if settings.tag_field else {}
            self.named[name] = {
                "type": "object",
                "properties": {
                    **kind,
                    **{field.encode_name: self.schema(field.type) for field in fields},
                },
                "required": [*kind, *(field.encode_name for field in fields if field.required)],
                "additionalProperties": not shape.__struct_config__.forbid_unknown_fields,
            }
        return {"$ref": f"#/components/schemas/{name}"}


def _is(origin: Any, kind: type) -> bool:
    return isinstance(origin, type) and issubclass(origin, kind)
