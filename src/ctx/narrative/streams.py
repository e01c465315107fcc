"""Streams: which part of the narrative a document belongs to, and the folder of that part.

`main` is `narrative/` itself, `work` the notes of one session, `feature-<slug>` what belongs to
one feature. `roles.place` tells the stream of a path; here it is the other way round.
"""

import unicodedata

from ctx.errors import UsageError
from ctx.ids import session_id
from ctx.narrative.document_roles import MAIN_STREAM

WORK_STREAM = "work"

_FEATURE = "feature-"
_LONGEST = 64
_HINT = f"Use up to {_LONGEST} letters, digits, dots, dashes and underscores."


def named(text: str) -> str:
    """The stream that a person means: a name that is no stream's is that of a feature."""
    if text in (MAIN_STREAM, WORK_STREAM):
        return text
    return _FEATURE + _slug(text.removeprefix(_FEATURE))


def folder_of(stream: str, session: str) -> str:
    """Where the documents of a stream lie, below `narrative/`; empty for the main one."""
    stream = named(stream)
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
    return slug
