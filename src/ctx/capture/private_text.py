"""What a person marked as nobody's business: `<private>…</private>`.

It is taken out before anything is written down. What is opened and never closed hides everything
behind it, and what is closed and was never opened everything before: it may have been opened in
another part of the same, as in an edit or a list. To lose a little is better than to keep what was
not to be kept.
"""

import re

_EDGE = re.compile(r"<(/?)private(?:\s[^<>]{0,100})?\s{0,10}>", re.IGNORECASE)


def without_private(text: str) -> str:
    """A text without its private parts, also where one stands inside of another."""
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


def is_all_private(text: str) -> bool:
    """Whether there was something, and nothing of it is left."""
    return bool(text.strip()) and not without_private(text).strip()
