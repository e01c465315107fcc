"""Decode bytes of any encoding: reading a file never fails because of its encoding.

A byte-order mark decides, then a declaration in the first two lines, then UTF-8. Anything else is
UTF-8 with stray bytes of an older encoding, or that older encoding throughout; Latin-1 gives every
byte a character.
"""

import codecs
import functools
import re
from typing import NamedTuple

# The longer ones first: UTF-32's begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ANY_MARK = tuple(mark for mark, _ in _MARKS)

# Python's rule (PEP 263), which editors and other languages follow, and XML's.
_DECLARED = re.compile(
    rb"(?:[^\n]*\n)??[^\n#/;%*<-]*+[#/;%*<-][^\n]*?coding[:=][ \t]*[\"']?([-\w.]{1,40})"
)
_DECLARED_WITHIN = 1000

# Text encodings. Python also has codecs that are not text encodings.
_FAMILIES = ("big5", "cp", "euc", "gb", "hkscs", "iso8859", "johab", "koi8", "mac", "shift_jis")
_ASCII = bytes(range(0x20, 0x7F))

_STRAY = "ctx-stray-bytes"
_MOST_STRAYS = 10_000
"""Each one is handled separately, which is slow."""


class DecodedText(NamedTuple):
    text: str
    encoding: str
    """Python's name for it; `mixed` for UTF-8 with stray bytes."""


def decode(content: bytes) -> DecodedText:
    if content.isascii():
        return DecodedText(content.decode("ascii"), "utf-8")
    marked = marked_encoding(content)
    if marked:
        return DecodedText(content.decode(marked, "replace"), marked)
    declared = _DECLARED.match(content[:_DECLARED_WITHIN])
    if declared and (name := _declared_encoding(declared[1].decode("latin-1"))):
        return DecodedText(content.decode(name, "replace"), name)
    try:
        return DecodedText(content.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        text = content.decode("utf-8", "replace")
        strays = text.count("\ufffd")
        beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
        if strays > _MOST_STRAYS or 2 * strays > beyond_ascii:
            return DecodedText(content.decode("latin-1"), "latin-1")
        return DecodedText(content.decode("utf-8", _STRAY), "mixed")


def marked_encoding(content: bytes) -> str | None:
    """The encoding of the byte-order mark at the beginning."""
    if not content.startswith(_ANY_MARK):
        return None
    return next(name for mark, name in _MARKS if content.startswith(mark))


def _stray_bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error(_STRAY, _stray_bytes)


@functools.lru_cache(100)
def _declared_encoding(name: str) -> str | None:
    """The encoding that a file declares, if ASCII is a subset of it."""
    try:
        codec = codecs.lookup(name).name
        if not codec.startswith(_FAMILIES):
            return None
        return codec if _ASCII.decode(codec) == _ASCII.decode("ascii") else None
    except (LookupError, UnicodeError):
        return None
