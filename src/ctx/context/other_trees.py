"""Whether a change that was made in another working tree of the repository is in this one.

The other tree may be on another branch, or may not be committed yet. A change counts as present if
the file is the same in both trees. If the files differ, a new item must be in the file here, and a
deleted one must not. A modified item of a different file counts only if the other tree is gone:
then its signature must be here.

Hooks load this module.
"""

import os

_LARGEST = 512 * 1024


class OtherTrees:
    """Compares the files of one working tree with those of others, each read once."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._texts: dict[str, str | None] = {}

    def has_change(self, folder: str, path: str, name: str, change: str, signature: str) -> bool:
        """Whether this tree has a change that was made in `folder`."""
        here = self._text(os.path.join(self._root, path))
        there = self._text(os.path.join(folder, path))
        if here == there and here is not None:
            return True
        last = name.rpartition(".")[2].rpartition("::")[2]
        if change == "deleted":
            return here is None or last not in here
        if here is None or last not in here:
            return False
        is_here = "".join(signature.split()) in "".join(here.split())
        return is_here and (change == "new" or there is None)

    def _text(self, path: str) -> str | None:
        """The text of a file; None if there is none, or if it is too large to compare."""
        if path not in self._texts:
            try:
                with open(path, "rb") as file:
                    data = file.read(_LARGEST + 1)
            except (OSError, ValueError):
                data = None
            is_known = data is not None and len(data) <= _LARGEST
            self._texts[path] = data.decode("utf-8", "replace") if data and is_known else None
        return self._texts[path]
