"""aider's repository map: the files in the order in which the map lists them.

The words and files that a text mentions are found as `aider.coders.base_coder` does it; that module
itself would import the clients of all models.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aider.repomap import RepoMap  # type: ignore[import-not-found]
from json_lines import serve  # type: ignore[import-not-found]

_LEAST_LETTERS = 5


class QuietTerminal:
    """What the map wants of aider's terminal."""

    def read_text(self, path: str) -> str:
        try:
            return Path(path).read_text(encoding="utf-8", errors="ignore")
        except OSError:
            return ""

    def tool_output(self, *_: Any) -> None: ...

    def tool_warning(self, *_: Any) -> None: ...

    def tool_error(self, *_: Any) -> None: ...


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


def main() -> None:
    # The cache of the map would be in the repository.
    RepoMap.TAGS_CACHE_DIR = os.path.join(os.environ["HOME"], "tags")
    maps: dict[str, RepoMap] = {}

    def answer(request: dict[str, Any]) -> list[str]:
        root, files, text = request["root"], request["files"], request["text"]
        known = maps.get(root) or maps.setdefault(root, RepoMap(root=root, io=QuietTerminal()))
        words = mentioned_words(text)
        mentioned = mentioned_files(text, files) | files_named_as(words, files)
        paths = [os.path.join(root, path) for path in files]
        tags = known.get_ranked_tags([], paths, mentioned, words)
        return list(dict.fromkeys(tag[0] for tag in tags))

    serve(answer)


if __name__ == "__main__":
    main()
