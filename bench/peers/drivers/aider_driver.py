"""aider's repository map: the files in the order in which the map lists them."""

import os
from pathlib import Path
from typing import Any

from aider.repomap import RepoMap  # type: ignore[import-not-found]
from aider_mentions import (  # type: ignore[import-not-found]
    files_named_as,
    mentioned_files,
    mentioned_words,
)
from json_lines import serve  # type: ignore[import-not-found]


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
