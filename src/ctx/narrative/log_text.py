"""Escapes other people's text inside a document that ctx writes.

It cannot produce a heading, a list, a code block, HTML or a link target, so a reader of the
document sees our structure and their words. Code between backticks on one line stays code.
"""

import re

# Lone surrogates, and the byte order mark, which is not part of a text.
_NO_TEXT = re.compile("[\ud800-\udfff]")
_MARK = "\ufeff"
_SPECIAL = re.compile(r"\\[!-/:-@\[-`{-~]|`+|<(?=[A-Za-z/!?])")
_BACKTICKS = re.compile("`+")
# What a line must not begin with: the backslash goes after a number, and before anything else.
_BEGINNING = re.compile(
    r"(\d{1,9})[.)](?=\s|\Z)|[-+*](?=\s|\Z)|#{1,6}(?=\s|\Z)|>|~{3}|\[[^\]]*\]:"
    r"|[-=*_](?:\s*[-=*_])*\Z"
)
_BULLET = re.compile(r"([-+*]|\d{1,9}[.)])\s+(?=\S)")


def heading(text: str) -> str:
    """The text as it can follow the `#` of a heading."""
    return _without_html(" ".join(_NO_TEXT.sub("\ufffd", text).replace(_MARK, "").split()))


def line(text: str) -> str:
    """The text as one line that can follow a bullet."""
    plain = heading(text)
    begins = _BEGINNING.match(plain)
    if begins is None:
        return plain
    at = len(begins[1] or "")
    return f"{plain[:at]}\\{plain[at:]}"


def paragraphs(text: str) -> str:
    """The text as prose: its paragraphs and plain lists stay, and nothing else has a meaning."""
    made = []
    for raw_line in text.splitlines():
        flat = " ".join(raw_line.split())
        bullet = _BULLET.match(flat)
        made.append(f"{bullet[1]} {line(flat[bullet.end() :])}" if bullet else line(flat))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(made)).strip("\n")


def _without_html(text: str) -> str:
    made = []
    done = 0
    while special := _SPECIAL.search(text, done):
        made.append(text[done : special.start()])
        done = special.end()
        token = special[0]
        if token[0] == "`":
            end = _code_end(text, done, len(token))
            # An unpaired backtick would pair with one in the lines below.
            made.append(text[special.start() : end] if end else "\\`" * len(token))
            done = end or done
        else:
            made.append("\\<" if token == "<" else token)
    return "".join([*made, text[done:]])


def _code_end(text: str, at: int, length: int) -> int | None:
    for closing in _BACKTICKS.finditer(text, at):
        if len(closing[0]) == length:
            return closing.end()
    return None
