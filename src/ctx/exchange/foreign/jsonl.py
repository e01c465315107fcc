"""Reads one JSON object per line, a format that any program can write.

    {"content": "Deploys run on Fridays", "type": "fact", "tags": ["project:shop"]}

Only `content` is required. `type`, `tags`, `summary`, `metadata`, `created_at`, `updated_at` and
`id` are read too, and all other fields are kept as metadata. A line without an id is identified by
its content.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO

from ctx import disk
from ctx.exchange.foreign import foreign_items
from ctx.exchange.foreign.foreign_database import require_file
from ctx.exchange.foreign.foreign_items import ForeignSource, Item, LocatedDraft, SkippedItem
from ctx.memory import model
from ctx.memory.model import Draft

PROGRAM = "jsonl"

_FIELDS = frozenset({"id", "type", "content", "summary", "tags", "metadata"})
_TIMES = frozenset({"created_at", "updated_at"})
LONGEST_LINE = 4 * model.LARGEST_CONTENT
_READ_SIZE = 1 << 20


@contextmanager
def reading(path: str) -> Iterator[ForeignSource]:
    with open_lines(path) as (total, lines):
        yield ForeignSource(PROGRAM, total, items(lines))


@contextmanager
def open_lines(path: str) -> Iterator[tuple[int, Iterator[bytes]]]:
    """The number of lines of a file, and the lines."""
    require_file(path)
    with ExitStack() as closing:
        with disk.explain_errors("reading what to import"):
            file = closing.enter_context(open(path, "rb"))
            total = sum(part.count(b"\n") for part in iter(lambda: file.read(_READ_SIZE), b""))
            file.seek(0)
        yield total, _lines(file)


def items(lines: Iterable[bytes]) -> Iterator[Item]:
    for place, value in values(lines):
        if isinstance(value, SkippedItem):
            yield value
            continue
        content = value.get("content")
        if not isinstance(content, str) or not content.strip():
            yield SkippedItem(place, "it has no content")
        else:
            yield LocatedDraft(place, _draft(value, content))


def values(lines: Iterable[bytes]) -> Iterator[tuple[str, dict[str, Any] | SkippedItem]]:
    """The JSON object of each line that is not empty, with its place."""
    for number, line in enumerate(lines, start=1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield f"line {number}", _value(line, f"line {number}")


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file. A very long line is cut, so that it is not valid JSON."""
    with disk.explain_errors("reading what to import"):
        while line := file.readline(LONGEST_LINE):
            yield line
            while len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                line = file.readline(LONGEST_LINE)


def _value(line: bytes, name: str) -> dict[str, Any] | SkippedItem:
    try:
        written = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return SkippedItem(name, f"it is not UTF-8 at its byte {error.start + 1:,}")
    value = foreign_items.json_value(written)
    if isinstance(value, dict):
        return value
    long = len(line) == LONGEST_LINE
    return SkippedItem(name, "it is too long" if long else "it is not a JSON object")


def _draft(fields: Mapping[str, Any], content: str) -> Draft:
    named = fields.get("type")
    node_type, metadata = foreign_items.node_type(named if isinstance(named, str) else "fact")
    created = foreign_items.moment(fields.get("created_at"))
    updated = foreign_items.moment(fields.get("updated_at"), fields.get("created_at"))
    summary = foreign_items.text(fields.get("summary")).strip() or None
    if own := foreign_items.text(fields.get("id")).strip():
        node_id = foreign_items.kept_id(own, created, PROGRAM)
    else:
        node_id = foreign_items.derived_id(created, PROGRAM, node_type, content.strip(), summary)
    extra = fields.get("metadata")
    more = {name: value for name, value in fields.items() if name not in _FIELDS | _TIMES}
    return Draft(
        node_id,
        node_type,
        content,
        foreign_items.iso(created),
        foreign_items.iso(updated),
        summary=summary,
        tags=foreign_items.tags(*_tags(fields.get("tags"))),
        metadata={**more, **(extra if isinstance(extra, dict) else {}), **metadata},
    )


def _tags(value: object) -> list[str]:
    if isinstance(value, str):
        return value.split(",")
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
