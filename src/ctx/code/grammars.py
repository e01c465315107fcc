"""The languages that are parsed, and their tree-sitter grammars.

A refresh asks for versions to find out whether anything has to be parsed, so this loads no grammar
and no module of a language.
"""

import functools
import importlib.util
from typing import NamedTuple


class GrammarPlace(NamedTuple):
    module: str
    function: str = "language"
    version: int = 1
    """Increased when the same file gives another result, so that such files are parsed again."""
    reader: str = ""
    """The module in `languages/` if it is for several languages, else it is named like its one."""


GRAMMARS = {
    "python": GrammarPlace("tree_sitter_python"),
    "rust": GrammarPlace("tree_sitter_rust"),
    "typescript": GrammarPlace(
        "tree_sitter_typescript", "language_typescript", reader="ecmascript"
    ),
    "tsx": GrammarPlace("tree_sitter_typescript", "language_tsx", reader="ecmascript"),
    "javascript": GrammarPlace("tree_sitter_javascript", reader="ecmascript"),
    "go": GrammarPlace("tree_sitter_go"),
    "java": GrammarPlace("tree_sitter_java"),
    "c": GrammarPlace("tree_sitter_c"),
    "cpp": GrammarPlace("tree_sitter_cpp"),
    "ruby": GrammarPlace("tree_sitter_ruby", reader="definitions"),
    "csharp": GrammarPlace("tree_sitter_c_sharp", reader="definitions"),
    "php": GrammarPlace("tree_sitter_php", "language_php", reader="definitions"),
    "bash": GrammarPlace("tree_sitter_bash", reader="definitions"),
    "kotlin": GrammarPlace("tree_sitter_kotlin", reader="definitions"),
    "scala": GrammarPlace("tree_sitter_scala", reader="definitions"),
    "swift": GrammarPlace("tree_sitter_swift", reader="definitions"),
    "lua": GrammarPlace("tree_sitter_lua", reader="definitions"),
}


@functools.cache
def version(name: str | None) -> int:
    """The version of a language's reader; 0 if there is none, or if its grammar is not installed:
    some systems lack wheels."""
    place = GRAMMARS.get(name or "")
    return place.version if place and importlib.util.find_spec(place.module) else 0
