"""The lines of observations.

    - Never commit yourself: I review every change first.
    - [bugfix] Fixed test_refresh in auth/service.py: the lock was taken twice

Hooks load this module.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ctx.context import layer_rows
from ctx.context.layer_lines import LayerLine, cut, digest, marked, sentence
from ctx.markdown import flat
from ctx.memory import model, sources

LENGTHS = (400, 240, 140, 80)
"""The lengths of the forms of a line, in characters."""

_CHANGED = re.compile(r"(?:Added|Modified|Removed|Renamed|Moved) `")
"""How synthesis describes changes to the code."""
_SAID_BY_USER = "Said by the user."
"""What synthesis writes below a decision; lines of what the user said do not repeat it."""


def is_by_user(kind: str, about: Mapping[str, Any]) -> bool:
    """Whether the user said it: a rule, a correction, or a choice. `about` is its metadata."""
    return kind in ("rule", "correction") or (
        kind == "decision" and str(about.get("said_by", "")) == "user"
    )


def line_of(row: Sequence[Any], kind: str) -> LayerLine:
    about = model.from_json(row[3])
    title, _, rest = row[2].strip()[: layer_rows.LONGEST_COMPARED].partition("\n")
    title, rest = flat(title), flat(rest)
    source = layer_rows.source(row)
    is_said = is_by_user(kind, about) or source == sources.USER
    if is_said:
        rest = rest.removesuffix(_SAID_BY_USER).rstrip()
    elif _CHANGED.match(rest) and not _CHANGED.match(title):
        rest = ""  # Its title tells it better.
    is_begun = bool(title) and rest.startswith(title.rstrip("….:"))
    if kind in ("rule", "correction"):
        text = flat(row[2])
    else:
        # A decision is followed by who made it, the others by details.
        begun = sentence(title) if kind == "decision" else f"{title.rstrip('.:')}:"
        text = rest if is_begun else f"{begun} {rest}" if title and rest else title or rest
    # Without a mark, a text could begin a list, a heading or a code block.
    shown = "" if is_said and text[:1].isalpha() else f"[{flat(kind)}] "
    texts = [cut(text, length) for length in LENGTHS] if is_said else marked(text, source, LENGTHS)
    return layer_line(row, text, tuple(f"- {shown}{form}" for form in texts))


def layer_line(row: Sequence[Any], text: str, forms: tuple[str, ...]) -> LayerLine:
    title = layer_rows.one_line(model.from_json(row[3]).get("title"))
    return LayerLine(row[0], layer_rows.label(row), row[5], digest(text), forms, title.rstrip("…."))
