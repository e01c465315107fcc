"""Removes text that the user marked as private: `<private>…</private>`.

It is removed before anything is stored. A tag that is never closed hides everything after it, and
a closing tag that was never opened hides everything before it: the other tag may be in another
part of the same text, as in an edit or a list. Losing a little is better than storing something
private.
"""

import re

_EDGE = re.compile(r"<(/?)private(?:\s[^<>]{0,100})?\s{0,10}>", re.IGNORECASE)


def without_private(text: str) -> str:
    """A text without its private parts, including nested ones."""
    if "<" not in text or "private" not in text.lower():
        return text
    kept: list[str] = []
    depth = at = 0
    for edge in _EDGE.finditer(text):
        if not depth:
            kept.append(text[at : edge.start()])
        if not edge[1]:
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept.clear()
        at = edge.end()
    return "".join(kept) + ("" if depth else text[at:])
