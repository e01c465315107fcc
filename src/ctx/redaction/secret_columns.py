"""Secrets below their name, in a table or a file of values with separators."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctx.redaction.entropy import is_placeholder, is_random
from ctx.redaction.password_words import is_chosen, is_passphrase
from ctx.redaction.scan_text import Page, SecretSpan, compiled
from ctx.redaction.secret_names import Name

RANK = 1
_BESIDE = b"|,;\t\"'\r\n "
_HEADING = r"[\"'` ]*[A-Za-z][\w -]{0,30}[\"'`\r ]*"
_HEADINGS = r"[\w\s\"'`|,;-]*"
_RULE = r"[-+=:| \t]+"
_GAPS = {"|": r"\|+", "  ": r"[ ]{2,}"}
_MOST_ROWS = 2000


class _Cell(NamedTuple):
    start: int
    text: str


def find(page: Page, name: Name) -> Iterator[SecretSpan]:
    """Find the secrets in the column that `name` is the heading of."""
    text, after = page.text, name.start + len(name.text)
    if page.raw[after : after + 1] not in _BESIDE:
        return
    start = text.rfind("\n", max(0, name.start - 400), name.start) + 1
    end = text.find("\n", after, after + 400)
    heading = text[start:end]
    if end < 0 or not compiled(_HEADINGS).fullmatch(heading):
        return
    sign = next((sign for sign in ("|", ",", ";", "\t", "  ") if sign in heading), "")
    if not sign or not compiled(rf"{_RULE}(?:\n|\Z)|[^\n]*?{re.escape(sign)}").match(text, end + 1):
        return
    headings = _cells(heading, start, sign)
    column = sum(cell.start <= name.start for cell in headings) - 1
    filled = [cell.text for cell in headings if cell.text.strip()]
    if (
        len(filled) < 2
        or not headings[-1].text
        or not all(map(compiled(_HEADING).fullmatch, filled))
    ):
        return
    if not headings[column].text.strip("\"'` \r").endswith(name.text):
        return
    for _ in range(_MOST_ROWS):
        start = end + 1
        end = text.find("\n", start)
        row = text[start : end if end >= 0 else None]
        if not row or not compiled(_RULE).fullmatch(row):
            cells = _cells(row, start, sign)
            if len(cells) != len(headings):
                return
            if span := _secret(name, cells[column]):
                yield span
        if end < 0:
            return


def _cells(line: str, start: int, sign: str) -> list[_Cell]:
    if sign == "|":  # With or without a sign at the edges.
        start += len(line) - len(line.lstrip("| \t"))
        line = line.strip("| \t\r")
    cells, at = [], 0
    for gap in compiled(_GAPS.get(sign, sign) + r"|\Z").finditer(line.rstrip()):
        cells.append(_Cell(start + at, line[at : gap.start()]))
        at = gap.end()
    return cells


def _secret(name: Name, cell: _Cell) -> SecretSpan | None:
    value = cell.text.strip(" \t\r\"'`")
    if name.kind == "password":
        is_secret = is_chosen(value.replace("=", "+")) or is_passphrase(value)
    elif name.kind == "pin":
        is_secret = re.fullmatch(r"\d{4,8}", value) is not None
    else:
        is_secret = (
            (is_random(value) or is_chosen(value))
            and not is_placeholder(value)
            and not re.search(r"\s", value)
            and len(value) >= (16 if re.fullmatch("[0-9a-f]+", value) else 8)
        )
    if not is_secret:
        return None
    start = cell.start + cell.text.index(value)
    rule = "password" if name.kind == "password" else "named-secret"
    return SecretSpan(start, start + len(value), rule, RANK)
