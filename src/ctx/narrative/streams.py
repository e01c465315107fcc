"""Streams, the parts of the narrative, with their folders, and the roles of documents.

`main` is `narrative/` itself, `work` contains the notes of one session, and `feature-<slug>`
contains the documents of one feature. `place` returns the stream of a path, and `folder_of` does
the opposite.
"""

import unicodedata
from typing import NamedTuple

from ctx.errors import UsageError
from ctx.ids import session_id
from ctx.redaction import redact

MAIN_STREAM = "main"

_BY_FOLDER = {"decisions": "decision", "log": "log", "tasks": "task"}


class DocumentPlace(NamedTuple):
    stream: str
    role: str


WORK_STREAM = "work"

_FEATURE = "feature-"
_LONGEST = 64
_HINT = f"Use up to {_LONGEST} letters, digits, dots, dashes and underscores."


def stream_named(text: str) -> str:
    """The stream with this name; any other name is the name of a feature."""
    if text in (MAIN_STREAM, WORK_STREAM):
        return text
    return _FEATURE + _slug(text.removeprefix(_FEATURE))


def folder_of(stream: str, session: str) -> str:
    """The folder of a stream below `narrative/`; empty for the main stream."""
    stream = stream_named(stream)
    if stream == MAIN_STREAM:
        return ""
    if stream == WORK_STREAM:
        return f"work/{session_id(session)}"
    return f"feature/{stream.removeprefix(_FEATURE)}"


def _slug(name: str) -> str:
    slug = unicodedata.normalize("NFC", name)
    fits = all(c.isalnum() or c in "._-" or unicodedata.category(c) in ("Mn", "Mc") for c in slug)
    if not fits or not 0 < len(slug) <= _LONGEST or not slug[0].isalnum() or slug[-1] == ".":
        raise UsageError(f"{name[:80]!r} cannot name a stream.", hint=_HINT)
    if redact(slug).findings:
        raise UsageError("The stream's name looks like a secret.", hint="Use another name.")
    return slug


def place(path: str) -> DocumentPlace:
    """The stream and the role of a document, by its path under `narrative/`."""
    match path.split("/"):
        case ["work", _, *_]:
            return DocumentPlace("work", "work")
        case ["feature", slug, *rest]:
            return DocumentPlace(f"feature-{slug}", _role(rest))
        case parts:
            return DocumentPlace(MAIN_STREAM, _role(parts))


def _role(parts: list[str]) -> str:
    if parts == ["README.md"]:
        return "overview"
    return _BY_FOLDER.get(parts[0], "doc") if len(parts) > 1 else "doc"
