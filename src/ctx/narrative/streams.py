"""Streams: the parts of the narrative, and their folders.

`main` is `narrative/` itself, `work` contains the notes of one session, and `feature-<slug>`
contains the documents of one feature. `document_roles.place` returns the stream of a path; this
module does the opposite.
"""

import unicodedata

from ctx.errors import UsageError
from ctx.ids import session_id
from ctx.narrative.document_roles import MAIN_STREAM
from ctx.redaction import redact

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
