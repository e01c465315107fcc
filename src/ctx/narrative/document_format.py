"""A narrative document: a title, a comment with metadata, and a body.

    # Title

    <!-- metadata:
    created: 2026-01-20T10:00:00Z
    updated: 2026-01-20T15:30:00Z
    tags: [rust, async]
    mentions: [crates/core/src/net.rs, core::net::Client]
    -->

    The body, in whatever sections its author likes.

People write these files too. So reading never fails, and finds the title and the comment wherever
they are. Writing to an existing document changes only the requested parts, and no other byte.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctx.errors import ContentRefused
from ctx.narrative import document_metadata
from ctx.narrative.markdown_blocks import COMMENT, HEADING, blocks

_BYTE_ORDER_MARK = "\ufeff"
_BLANK_BEGINNING = re.compile(r"\A[\s\ufeff]*(?:\n|\ufeff)")
_BLANK_LINE = re.compile(r"(?>\r\n|\r|\n)[ \t]*[\r\n]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_CLOSING_MARKS = re.compile(r"(?:^|(?<=[ \t]))(\\*)(#+)\Z")


class Document(NamedTuple):
    title: str
    """The first heading of level 1; empty if there is none."""
    body: str
    """Everything except the title and the metadata."""
    created: str | None
    updated: str | None
    """Times as they are written."""
    tags: tuple[str, ...]
    mentions: tuple[str, ...]


class _Parts(NamedTuple):
    """The offsets of the title and the metadata comment."""

    title: tuple[int, int] | None
    comment: tuple[int, int] | None
    closed: bool
    """Whether everything that is opened in the text is closed in it."""

    @property
    def spans(self) -> list[tuple[int, int]]:
        return sorted(part for part in (self.title, self.comment) if part)


def parse(text: str) -> Document:
    """Parse a document. Invalid parts are ignored."""
    text = _readable(text)
    parts = _parts_of(text)
    entries = document_metadata.parse(text[slice(*parts.comment)]) if parts.comment else {}
    return Document(
        title=_read_title(text[slice(*parts.title)]) if parts.title else "",
        body=_body(text, parts),
        created=document_metadata.scalar(entries.get("created", "")) or None,
        updated=document_metadata.scalar(entries.get("updated", "")) or None,
        tags=document_metadata.items(entries.get("tags", "")),
        mentions=document_metadata.items(entries.get("mentions", "")),
    )


def entry(text: str, key: str) -> str:
    """An entry of the metadata in one line; empty if there is none."""
    text = _readable(text)
    comment = _parts_of(text).comment
    return (
        document_metadata.scalar(document_metadata.parse(text[slice(*comment)]).get(key, ""))
        if comment
        else ""
    )


def render(
    title: str,
    body: str,
    *,
    created: str,
    tags: Iterable[str] = (),
    mentions: Iterable[str] = (),
    more: Iterable[tuple[str, str]] = (),
) -> str:
    """A new document. The body is not changed: its sections are up to its author. `more` are
    further lines of metadata."""
    body = tidy(body)
    entries: list[tuple[str, str | Sequence[str]]] = [("created", created), ("updated", created)]
    entries += more
    entries += [(key, many) for key, many in (("tags", [*tags]), ("mentions", [*mentions])) if many]
    comment = document_metadata.render(entries)
    has_heading = bool(title.strip()) or _parts_of(body).title is not None
    parts = [*([_title_line(title)] if has_heading else []), comment, *([body] if body else [])]
    return "\n\n".join(parts) + "\n"


def content(document: Document) -> str:
    """The content of the document, as it is stored in the graph."""
    return "\n\n".join(part for part in (document.title, document.body) if part)


def rewritten(
    text: str,
    *,
    title: str | None = None,
    body: str | None = None,
    updated: str | None = None,
    tags: Sequence[str] | None = None,
    mentions: Sequence[str] | None = None,
) -> str:
    """The document with some parts replaced; the rest stays unchanged, byte for byte.

    A part that already has the wanted value stays as its author wrote it.
    """
    present = parse(text)
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    rest = text[len(mark) :]
    newline = "\r\n" if 2 * rest.count("\r\n") > rest.count("\n") else "\n"
    if title is not None and title.strip() != present.title:
        rest = _with_title(rest, title, newline)
    wanted: list[tuple[str, str | Sequence[str]]] = []
    if updated is not None and updated != present.updated:
        wanted.append(("updated", updated))
    if tags is not None and tuple(tags) != present.tags:
        wanted.append(("tags", tags))
    if mentions is not None and tuple(mentions) != present.mentions:
        wanted.append(("mentions", mentions))
    if wanted:
        rest = _with_metadata(rest, wanted, newline)
    if body is not None and tidy(body) != present.body:
        rest = _with_body(rest, tidy(body), newline)
    return mark + rest


def tidy(text: str) -> str:
    """A body for comparison: one kind of line ending, no blank lines around it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").rstrip()
    return _BLANK_BEGINNING.sub("", text)


def _readable(text: str) -> str:
    """Replace surrogates: bytes that are not text were decoded to them, and nothing else accepts
    them."""
    text = text.removeprefix(_BYTE_ORDER_MARK)
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _parts_of(text: str) -> _Parts:
    title = comment = None
    closed = True
    for block in blocks(text):
        closed = closed and block.closed
        if block.kind == HEADING and block.marks == "#" and title is None:
            title = (block.start, block.end)
        elif (
            block.kind == COMMENT
            and block.closed
            and comment is None
            and document_metadata.is_metadata(text, block.start, block.end)
        ):
            comment = (block.start, block.end)
        if title and comment:
            break
    return _Parts(title, comment, closed)


def _body(text: str, parts: _Parts) -> str:
    pieces = [tidy(piece) for piece in _pieces(text, parts)]
    return "\n\n".join(piece for piece in pieces if piece)


def _pieces(text: str, parts: _Parts) -> list[str]:
    """The text before, between and after the title and the comment."""
    offsets = [0, *(offset for part in parts.spans for offset in part), len(text)]
    return [text[start:end] for start, end in zip(offsets[::2], offsets[1::2], strict=True)]


def _read_title(line: str) -> str:
    title = line[1:].strip()
    closing = _CLOSING_MARKS.search(title)
    if closing is None:
        return title
    if not closing[1]:
        # `# Title #` is a way to write `# Title`.
        return title[: closing.start()].rstrip()
    return title[: closing.start()] + title[closing.start() + 1 :]


def _title_line(title: str) -> str:
    title = title.strip()
    if "\n" in title or "\r" in title:
        raise ContentRefused(
            "A title is one line.", hint="Give its first line as the title, the rest as the body."
        )
    closing = _CLOSING_MARKS.search(title)
    if closing:
        title = f"{title[: closing.start()]}\\{title[closing.start() :]}"
    return f"# {title}".rstrip()


def _with_title(text: str, title: str, newline: str) -> str:
    line = _title_line(title)
    part = _parts_of(text).title
    if part:
        return text[: part[0]] + line + text[part[1] :]
    return f"{line}{newline}{newline}{text}"


def _with_metadata(
    text: str, wanted: Sequence[tuple[str, str | Sequence[str]]], newline: str
) -> str:
    parts = _parts_of(text)
    if parts.comment:
        start, end = parts.comment
        return (
            text[:start]
            + document_metadata.replace_entries(text[start:end], wanted, newline)
            + text[end:]
        )
    comment = document_metadata.render([(key, value) for key, value in wanted if value])
    if comment == document_metadata.NOTHING:
        return text
    return _with_comment(text, comment.replace("\n", newline), newline)


def _with_comment(text: str, comment: str, newline: str) -> str:
    """A first comment, below the title or at the top."""
    title = _parts_of(text).title
    if title is None:
        return f"{comment}{newline}{newline}{text}"
    before, behind = text[: title[1]], text[title[1] :]
    is_apart = not behind.strip() or _BLANK_LINE.match(behind)
    gap = "" if is_apart else newline
    return f"{before}{newline}{newline}{comment}{gap}{behind or newline}"


def _with_body(text: str, body: str, newline: str) -> str:
    parts = _parts_of(text)
    inner = _parts_of(body)
    # Text that looks like a title or metadata must not come first.
    if inner.comment and not parts.comment:
        text = _with_comment(text, document_metadata.NOTHING.replace("\n", newline), newline)
    if inner.title and not parts.title:
        text = f"#{newline}{newline}{text}"
    parts = _parts_of(text)
    pieces = _pieces(text, parts)
    filled = [number for number, piece in enumerate(pieces) if tidy(piece)]
    is_harmless = inner.closed and not inner.spans
    target = filled[-1] if filled and is_harmless else len(pieces) - 1
    written = body.replace("\n", newline)
    for number in {*filled, target}:
        pieces[number] = _replace_part(
            pieces[number],
            written if number == target else "",
            newline,
            is_first=number == 0,
            is_last=number == len(pieces) - 1,
        )
    kept = [text[start:end] for start, end in parts.spans]
    return "".join(part for pair in zip(pieces, [*kept, ""], strict=True) for part in pair)


def _replace_part(piece: str, written: str, newline: str, *, is_first: bool, is_last: bool) -> str:
    """A part of the document with its text replaced."""
    if not written:
        return "" if is_first else newline if is_last else newline + newline
    before = behind = ""
    if piece.strip():
        beginning = _BLANK_BEGINNING.match(piece)
        before = beginning[0] if beginning else ""
        behind = piece[len(piece.rstrip()) :]
    elif is_last:
        behind = newline
    if not is_first and not re.search(r"[\r\n]", before):
        before = newline + newline
    if not is_last and not re.search(r"[\r\n]", behind):
        behind = newline + newline
    return before + written + behind
