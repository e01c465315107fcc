"""Validates the records of a project before they are applied.

A project's records come with a repository, and anybody may have written them. An invalid record
stays in its object and is skipped, so that readers need not handle it.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from ctx import clock
from ctx.errors import UsageError
from ctx.ids import is_ulid
from ctx.memory import model
from ctx.memory.records import Record

_LONGEST_TYPE = 40
_LONGEST_TIME = 40
_DEEPEST = 100
_HOLDING = (dict, list)


def fits(record: Record) -> bool:
    """Whether a record is valid for its kind. Unknown kinds are accepted: a newer version wrote
    them."""
    check = _CHECKS.get(record.kind)
    return (check is None or check(record)) and not _is_deep(record.body)


def fits_user_store(record: Record) -> bool:
    """The same for a record of a user store, where an edge may point to a project's store."""
    if record.kind == "edge.put" and record.body.get("outside") is True:
        body = {name: value for name, value in record.body.items() if name != "outside"}
        record = record._replace(body=body)
    return fits(record)


def _is_node_put(record: Record) -> bool:
    body = record.body
    content, summary = body.get("content", "-"), body.get("summary")
    return (
        _is_node_record(record)
        and _is_word(body.get("type", "fact"))
        and isinstance(content, str)
        and bool(content)
        and "\0" not in content
        and (summary is None or isinstance(summary, str))
        and isinstance(body.get("metadata", {}), dict)
        and isinstance(body.get("over", ""), str)
        and _has_before(body)
        and _is_dated(body)
    )


def _has_before(body: Mapping[str, Any]) -> bool:
    """Whether `before`, the previous content of a document, is missing or valid."""
    if "before" not in body:
        return True
    before = body["before"]
    return "content" in body and isinstance(before, str) and bool(before) and "\0" not in before


def _is_settling(record: Record) -> bool:
    lists = [record.body.get(name, []) for name in ("fields", "over")]
    return _is_node_record(record) and all(
        isinstance(words, list) and all(isinstance(word, str) for word in words) for words in lists
    )


def _is_tag(record: Record) -> bool:
    return _is_node_record(record) and _can_be_tag(record.key) and _is_dated(record.body)


def _is_edge(record: Record) -> bool:
    """An edge in a project's store must not point to another store."""
    edge_type, _, to_id = record.key.partition(" ")
    body = record.body
    edge_id = body.get("id", record.id)
    return (
        _is_node_record(record)
        and record.target == to_id != record.subject
        and is_ulid(to_id)
        and _is_word(edge_type)
        and isinstance(edge_id, str)
        and is_ulid(edge_id)
        and isinstance(body.get("metadata", {}), dict)
        and not body.get("outside")
        and _is_dated(body)
    )


def _is_view_put(record: Record) -> bool:
    query, budget = record.body.get("query"), record.body.get("budget")
    return (
        _is_view_record(record)
        and isinstance(query, str)
        and (budget is None or _is_budget(budget))
        and _is_dated(record.body)
    )


def _is_node_record(record: Record) -> bool:
    return is_ulid(record.subject)


def _is_view_record(record: Record) -> bool:
    try:
        return model.view_name(record.subject) == record.subject
    except UsageError:
        return False


def _is_never_valid(_record: Record) -> bool:
    """For kinds that belong to the user store only, such as the current task."""
    return False


_CHECKS: Mapping[str, Callable[[Record], bool]] = {
    "node.put": _is_node_put,
    "node.delete": _is_node_record,
    "node.restore": _is_node_record,
    "node.settle": _is_settling,
    "tag.add": _is_tag,
    "tag.remove": _is_tag,
    "edge.put": _is_edge,
    "edge.delete": _is_edge,
    "view.put": _is_view_put,
    "view.delete": _is_view_record,
    "task.set": _is_never_valid,
    "undo": _is_node_record,
}


def _is_word(value: object) -> bool:
    """Whether a value can be a type, perhaps of a newer version: letters and dashes."""
    return (
        isinstance(value, str)
        and len(value) <= _LONGEST_TYPE
        and value.isascii()
        and value.replace("-", "").replace("_", "").isalpha()
    )


def _is_budget(value: object) -> bool:
    return type(value) is int and model.SMALLEST_BUDGET <= value <= model.LARGEST_BUDGET


def _is_dated(body: Mapping[str, Any]) -> bool:
    created, updated = body.get("created_at"), body.get("updated_at")
    return (not created or (isinstance(created, str) and _is_time(created))) and (
        not updated or (isinstance(updated, str) and _is_time(updated))
    )


@lru_cache(1000)
def _is_time(text: str) -> bool:
    """Whether a time has the canonical form: times are compared as text."""
    ms = clock.parse_iso(text) if len(text) <= _LONGEST_TIME else None
    return ms is not None and clock.iso(ms) == text


_can_be_tag = lru_cache(1000)(model.is_tag)


def _is_deep(body: Mapping[str, Any]) -> bool:
    """Whether values are nested so deep that a reader could overflow its stack."""
    if not body:
        return False
    level: list[Any] = [value for value in body.values() if type(value) in _HOLDING]
    for _ in range(_DEEPEST):
        if not level:
            return False
        inner = (value.values() if isinstance(value, dict) else value for value in level)
        level = [value for part in inner for value in part if type(value) in _HOLDING]
    return True
