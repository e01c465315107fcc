"""Cuts a text into passages of whole paragraphs, list items or sentences."""

import re
from collections.abc import Iterator

LONGEST = 400
"""The longest passage, in characters."""

SHORTEST = 20
"""The shortest passage: less says nothing without the conversation around it."""

_LONGEST_TEXT = 24_000
_BREAKS = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+•]|\d+[.)])\s)|\n(?=#)")
_FENCED = re.compile(
    # A fence that is not closed ends with the text, as in markdown.
    r"^[ \t]{0,3}(```|~~~).*?(?:^[ \t]{0,3}\1[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE_END = re.compile(r"[.!?…:;][)\"'”’*_]*\s")
_SPACE = re.compile(r"[ \t]+")


def passages(text: str, shortest: int = SHORTEST) -> list[str]:
    """The passages in order, without fenced code. Short neighbours are joined."""
    text = _FENCED.sub("\n\n", text[:_LONGEST_TEXT])
    joined: list[str] = []
    for block in _BREAKS.split(text):
        for passage in _cut(_SPACE.sub(" ", block).strip()):
            if joined and len(joined[-1]) + len(passage) < LONGEST:
                joined[-1] += f"\n{passage}"
            else:
                joined.append(passage)
    return [passage for passage in joined if len(passage) >= shortest]


def _cut(text: str) -> Iterator[str]:
    while len(text) > LONGEST:
        ends = [end.end() for end in _SENTENCE_END.finditer(text, LONGEST // 3, LONGEST)]
        at = ends[-1] if ends else text.rfind(" ", LONGEST // 2, LONGEST)
        at = at if at > 0 else LONGEST
        yield text[:at].strip()
        text = text[at:].strip()
    if text:
        yield text
