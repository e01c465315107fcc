"""The comments right before a definition, found in the text: a query would return all comments of a
file, and most of them document nothing."""

import re

_MOST = 4_000
_STARS = re.compile(r"^[ \t]*\*?[ \t]?", re.MULTILINE)


def before(content: bytes, start: int, directive: re.Pattern[bytes] | None = None) -> str:
    """The comments that end on the line before the line of `start`: lines of `//`, or one `/* …
    */`. Directives for tools are excluded."""
    end = content.rfind(b"\n", 0, start)
    lines: list[bytes] = []
    size = 0
    while end > 0 and size < _MOST:
        begin = content.rfind(b"\n", 0, end) + 1
        line = content[begin:end].strip()
        if line[:2] != b"//":
            if not lines and line[-2:] == b"*/":
                return _block(content[max(0, end - _MOST) : end])
            break
        if directive is None or not directive.match(line):
            lines.append(line[3:] if line[2:3] in b" /!" else line[2:])
        size += len(line)
        end = begin - 1
    lines.reverse()
    return b"\n".join(lines).decode("utf-8", "replace").strip() if lines else ""


def _block(text: bytes) -> str:
    """The text of the comment at the end of a text."""
    inside = text[text.rfind(b"/*") + 2 :].rstrip()[:-2].lstrip(b"*!")
    plain = _STARS.sub("", inside.decode("utf-8", "replace"))
    return "\n".join(line.rstrip() for line in plain.splitlines()).strip()
