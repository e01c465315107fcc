"""The words and files that a message mentions, found as `aider.coders.base_coder` finds them.

That module itself would import the clients of all models.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

_LEAST_LETTERS = 5


def mentioned_words(text: str) -> set[str]:
    return set(re.split(r"\W+", text))


def mentioned_files(text: str, files: Iterable[str]) -> set[str]:
    """Files whose path is in the text, or whose name is there and is the only one of its kind."""
    words = {word.rstrip(",.!;:?").strip("\"'`*_") for word in text.split()}
    named = defaultdict(list)
    found = set()
    for path in files:
        if path in words:
            found.add(path)
        name = os.path.basename(path)
        if re.search(r"[._-]", name):
            named[name].append(path)
    return found | {paths[0] for name, paths in named.items() if len(paths) == 1 and name in words}


def files_named_as(words: Iterable[str], files: Iterable[str]) -> set[str]:
    wanted = {word.lower() for word in words if len(word) >= _LEAST_LETTERS}
    return {path for path in files if Path(path).stem.lower() in wanted}
