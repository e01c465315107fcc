"""Splits the text of a query into tokens with positions, and formats errors with a caret.

Splitting never fails. A word is everything that is not a filter, an operator or a parenthesis; the
parser decides whether a word is allowed.
"""

from typing import Literal, NamedTuple

from ctx.errors import QueryInvalid

FILTERS = (
    "type",
    "tag",
    "created",
    "updated",
    "tokens",
    "has",
    "from",
    "to",
    "session",
    "project",
    "path",
    "id",
)

Kind = Literal["word", "filter", "and", "or", "not", "(", ")"]

_OPERATORS: dict[str, Kind] = {"and": "and", "or": "or", "not": "not"}
_SHOWN_WIDTH = 72
_BEFORE_PLACE = 30


class Token(NamedTuple):
    kind: Kind
    start: int
    end: int
    name: str = ""
    value: str = ""
    value_start: int = 0
    is_closed: bool = True
    """False for a value with an unclosed quote."""


def tokens(text: str) -> list[Token]:
    """The tokens of a text, in order."""
    result: list[Token] = []
    start = 0
    while start < len(text):
        if text[start].isspace():
            start += 1
            continue
        result.append(_token(text, start))
        start = result[-1].end
    return result


def _token(text: str, start: int) -> Token:
    first = text[start]
    if first == "(":
        return Token("(", start, start + 1)
    if first == ")":
        return Token(")", start, start + 1)
    if first == '"' and (closing := _closing_quote(text, start)):
        return Token("word", start, closing + 1)
    end = start + 1
    while end < len(text) and not text[end].isspace() and text[end] not in "()":
        end += 1
    operator = _OPERATORS.get(text[start:end].lower())
    if operator:
        return Token(operator, start, end)
    return _filter(text, start, end) or Token("word", start, end)


def _filter(text: str, start: int, end: int) -> Token | None:
    """`name:value`; None for text that only looks like it, such as URLs and error messages."""
    colon = text.find(":", start, end)
    name = text[start : max(colon, start)]
    if not name.isascii() or not name[:1].isalpha() or not name.replace("-", "_").isidentifier():
        return None
    begin = colon + 1
    # `TypeError:`, `http://…`, `C:\\…`. But a known filter without a value is a mistake.
    unlikely = ":" if name in FILTERS else ":/\\"
    if text[begin:end].startswith(tuple(unlikely)) or (begin == end and name not in FILTERS):
        return None
    if not text.startswith('"', begin):
        return Token("filter", start, end, name, text[begin:end], begin)
    closing = _closing_quote(text, begin)
    if closing is None:
        if name not in FILTERS:
            return None
        return Token("filter", start, len(text), name, text[begin + 1 :], begin, is_closed=False)
    parts = text[begin + 1 : closing].split("\\\\")
    value = "\\".join(part.replace('\\"', '"') for part in parts)
    return Token("filter", start, closing + 1, name, value, begin)


def _closing_quote(text: str, opening: int) -> int | None:
    place = opening + 1
    while place < len(text) and text[place] != '"':
        place += 2 if text[place] == "\\" else 1
    return place if place < len(text) else None


def invalid(text: str, start: int, end: int, sentence: str, hint: str | None) -> QueryInvalid:
    """The error for a mistake between two positions, with the text marked in its detail."""
    left = max(0, min(start - _BEFORE_PLACE, len(text) - _SHOWN_WIDTH))
    right = left + _SHOWN_WIDTH
    before = ("…" if left else "") + on_one_line(text[left:start])
    marked = on_one_line(text[start : min(end, right)])
    after = on_one_line(text[min(end, right) : right]) + ("…" if right < len(text) else "")
    caret = " " * _width(before) + "^" * max(1, _width(marked))
    return QueryInvalid(sentence, hint=hint, detail=f"  {before}{marked}{after}\n  {caret}")


def on_one_line(text: str) -> str:
    """The text on one line, with one visible character for each character."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else " " if character.isspace() else "\ufffd"
        for character in text
    )


def _width(text: str) -> int:
    """Columns on a terminal: East Asian letters take two, combining accents none."""
    if text.isascii():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)
