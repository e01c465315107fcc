"""What every language has in common, and where they differ.

A language is a grammar, a query that names what matters in it, and answers to questions that the
query cannot put. The captures of a query:

- `@item.<kind>`: the whole of a definition;
- `@outer` and `@inner`: a node that belongs to the definition in it, such as its decorators;
- `@call`: what is called, without its arguments;
- `@type`: where a type is written;
- `@reference`: a name where a value is taken: only those of the whole file are looked at;
- `@import`: an import, whole;
- `@bind`: where a name gets a value of a known kind;
- `@comment`: a comment, which may be the documentation of what follows;
- `@namespace`: the name of the package that the file says it belongs to.
"""

import functools
import importlib
import importlib.util
import re
from collections.abc import Iterable, Iterator
from importlib import resources
from typing import TYPE_CHECKING, AnyStr, NamedTuple

from ctx.code.source_model import SourceImport, SourceItem

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node, Query

READ = (
    *("python", "rust", "typescript", "tsx", "javascript", "go", "java", "c", "cpp"),
    *("ruby", "csharp", "php", "bash", "kotlin", "scala", "swift", "lua"),
)
"""The languages that have a module in `languages/`."""

_LONGEST_EXPRESSION = 300
_DEEPEST_BRACKETS = 20


_STRINGS = rb"(\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`)"
HASH_COMMENT = re.compile(_STRINGS + rb"|#[^\n]*")


class ItemDescription(NamedTuple):
    """What a language says about a definition."""

    name: str
    at: int
    """The byte where its name stands."""
    kind: str
    visibility: str
    body: int
    """The byte where what it does begins, and what it promises ends."""
    type: str = ""
    bases: tuple[str, ...] = ()
    doc: str | None = None
    """None: what the comments before it say."""
    promise: bytes = b""
    """Where it is not all that stands before the body."""


class SourceText(NamedTuple):
    """A file while it is being read."""

    path: str
    content: bytes

    def text(self, node: "Node") -> str:
        return self.content[node.start_byte : node.end_byte].decode("utf-8", "replace")


class Language:
    """How one language is read. Each has one instance, called LANGUAGE."""

    name: str
    version = 1
    """Raised when the same file gives something else: what was read before is read again."""
    grammar: tuple[str, str]
    """The module of the grammar and the function in it."""
    query_file: str
    """In `languages/`; one that builds on another names both."""
    separator = "."
    """What stands between the parts of a qualified name."""
    indentation_matters = False
    comment = re.compile(_STRINGS + rb"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
    """What is no part of a signature although it stands in it. Strings are: they are group 1."""

    def __init__(self) -> None:
        self.known_expressions: dict[bytes, str] = {}
        self.known_types: dict[bytes, tuple[tuple[int, str], ...]] = {}

    def readable(self, content: bytes) -> bytes:
        """The file as the grammar is to see it: as many bytes, without what hides code from it."""
        return content

    def item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | Iterable[ItemDescription] | None:
        """What a captured definition is; None where it is none. `parent` is the item around it."""
        raise NotImplementedError

    def imports(
        self, node: "Node", scope: int, line: int, source: SourceText
    ) -> Iterable[SourceImport]:
        raise NotImplementedError

    def bindings(self, node: "Node", source: SourceText) -> Iterable[tuple[str, str]]:
        """Names and what they hold. `self.name` is a field of the class around."""
        raise NotImplementedError

    def doc(self, comments: list[bytes]) -> str:
        """What the comments right before a definition say about it."""
        return plain_comment(b"\n".join(comments).decode("utf-8", "replace"))

    def file_doc(self, _content: bytes, /) -> str:
        """What a file says about itself."""
        return ""

    def expression(self, text: bytes) -> str | None:
        """How what is called is named; None where it has no name at all."""
        return flatten(text)

    def types(self, text: bytes) -> Iterator[tuple[int, str]]:
        """The names in a type, each with its place in the text."""
        for found in _NAME_IN_TYPE.finditer(text):
            yield found.start(), found.group().decode("utf-8", "replace")


_NAME_IN_TYPE = re.compile(rb"[A-Za-z_][\w.:]*")
_PLAIN = re.compile(rb"[\w.:$]+")
_INNERMOST = re.compile(rb"\([^()]*\)")
_INDEX = re.compile(rb"\[[^\[\]]*\]")
_EXPRESSION = re.compile(r"[\w$]+(?:(?:\.|::)[\w$]+|\(\)|\[\])*")
_LAST_NAME = re.compile(r"([\w$]+)$")
_SPACE = re.compile(rb"\s+")


def flatten(text: bytes) -> str | None:
    """An expression without its arguments and indices: `a.b(c, d).e` is `a.b().e`."""
    if _PLAIN.fullmatch(text):
        return text.decode("utf-8", "replace")
    cut = text[-_LONGEST_EXPRESSION:]
    is_whole = len(cut) == len(text)
    # From the inside out; \1 and \2 mark what has been taken together already.
    for _ in range(_DEEPEST_BRACKETS):
        shorter = _INDEX.sub(b"\2", _INNERMOST.sub(b"\1", cut))
        if shorter == cut:
            break
        cut = shorter
    plain = _SPACE.sub(b"", cut.replace(b"\1", b"()").replace(b"\2", b"[]"))
    plain = plain.replace(b"?.", b".").replace(b"!.", b".").replace(b"->", b".")
    found = plain.decode("utf-8", "replace")
    if is_whole and _EXPRESSION.fullmatch(found):
        return found
    last = _LAST_NAME.search(found)
    return f"?.{last.group(1)}" if last else None


def collapsed(pattern: re.Pattern[AnyStr], mark: AnyStr, text: AnyStr) -> AnyStr:
    """Without what is between brackets, from the inside out."""
    for _ in range(_DEEPEST_BRACKETS):
        shorter = pattern.sub(mark, text)
        if shorter == text:
            break
        text = shorter
    return text


_COMMENT_MARKS = re.compile(
    r"^[ \t]*(?://[/!]?|/\*[*!]?|\*/|\*(?!/)|#+!?|--+)?[ \t]?|\*+/[ \t]*$", re.MULTILINE
)


def plain_comment(text: str) -> str:
    """The words of a comment, without the marks that make it one."""
    lines = [_COMMENT_MARKS.sub("", line).rstrip() for line in text.splitlines()]
    return "\n".join(lines).strip()


_PROBLEMS = "(ERROR) @problem\n(MISSING) @problem\n"


class Grammars(NamedTuple):
    """What is needed to read a file of a language, made once."""

    language: Language
    grammar: "Grammar"
    query: "Query"
    problems: "Query"
    """Where the grammar did not understand."""


@functools.cache
def version(name: str) -> int:
    """The version of a language; 0 where there is no grammar for it: some systems have no wheel
    for all of them."""
    language = _language(name)
    has_grammar = importlib.util.find_spec(language.grammar[0]) is not None
    return language.version if has_grammar else 0


def _language(name: str) -> Language:
    module = importlib.import_module(f"ctx.code.languages.{name}")
    language: Language = module.LANGUAGE
    return language


@functools.cache
def load(name: str) -> Grammars:
    """A language with its grammar and query. Both take milliseconds to make: only when needed."""
    import tree_sitter

    language = _language(name)
    grammar_module, function = language.grammar
    pointer = getattr(importlib.import_module(grammar_module), function)()
    grammar = tree_sitter.Language(pointer)
    folder = resources.files("ctx.code.languages")
    parts = (folder.joinpath(name).read_text("utf-8") for name in language.query_file.split())
    query = tree_sitter.Query(grammar, "\n".join(parts))
    return Grammars(language, grammar, query, tree_sitter.Query(grammar, _PROBLEMS))
