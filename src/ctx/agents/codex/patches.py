"""The files that a patch of Codex writes.

    *** Begin Patch
    *** Update File: shop/orders.py
    *** Move to: shop/sales.py
    @@ def total():
    -    return 0
    +    return 1
    *** Add File: notes.txt
    +a line
    *** Delete File: old.py
    *** End Patch

An update contains only the lines around a change, so the contents of its file are pieces. Parsing
never fails: what is no patch writes no file.
"""

from typing import NamedTuple

from ctx.capture import kept_contents
from ctx.hosts.tool_calls import FileContents

BEGIN = "*** Begin Patch"

_ADD, _UPDATE, _DELETE = "*** Add File: ", "*** Update File: ", "*** Delete File: "
_MOVE = "*** Move to: "
_MOST_FILES = 200


class PatchedFile(NamedTuple):
    path: str
    contents: FileContents


def files(text: str) -> list[PatchedFile]:
    """The files that a patch writes, in its order."""
    found: list[PatchedFile] = []
    path, is_new = "", False
    old: list[str] = []
    new: list[str] = []

    def end_file() -> None:
        if path:
            before = None if is_new else "".join(old)
            contents = kept_contents.limited(before, "".join(new), is_whole=is_new)
            found.append(PatchedFile(path, kept_contents.without_secrets(path, contents)))

    for line in text[text.find(BEGIN) :].splitlines(keepends=True) if BEGIN in text else ():
        heading = line.rstrip("\r\n")
        start = next((each for each in (_ADD, _UPDATE, _DELETE) if heading.startswith(each)), "")
        if start:
            end_file()
            path, old, new, is_new = heading[len(start) :].strip(), [], [], start == _ADD
        elif heading.startswith(_MOVE):
            path = heading[len(_MOVE) :].strip()
        elif heading.startswith("*** End"):
            continue
        elif line[:1] == "+":
            new.append(line[1:])
        elif line[:1] == "-":
            old.append(line[1:])
        elif line[:1] == " ":
            old.append(line[1:])
            new.append(line[1:])
    end_file()
    return found[:_MOST_FILES]
