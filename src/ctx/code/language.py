"""What all languages have in common, and the points where they differ.

A language is a grammar, a query that captures what matters, and methods for what a query cannot
express. The captures of a query:

- `@item.<kind>`: a whole definition;
- `@outer` and `@inner`: a node that belongs to the definition in it, such as its decorators;
- `@call`: what is called, without its arguments;
- `@type`: a type annotation;
- `@reference`: a name that is read as a value; only file-level names are used;
- `@import`: a whole import;
- `@bind`: where a name gets a value of a known type;
- `@comment`: a comment, which may document what follows;
- `@namespace`: the name of the package that the file declares.
"""

import functools
import importlib
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, AnyStr, NamedTuple

from ctx.code.grammars import GRAMMARS
from ctx.code.source_model import SourceImport, SourceItem

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node, Query


_LONGEST_EXPRESSION = 300
_DEEPEST_BRACKETS = 20


_STRINGS = rb"(\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`)"
HASH_COMMENT = re.compile(_STRINGS + rb"|#[^\n]*")
_LONGEST_COMMENT = 4_000
_STARS = re.compile(r"^[ \t]*\*?[ \t]?", re.MULTILINE)


class ItemDescription(NamedTuple):
    """What a language reports about a definition."""

    name: str
    at: int
    """The byte offset of its name."""
    kind: str
    visibility: str
    body: int
    """The byte offset where the signature ends and the body begins."""
    type: str = ""
    bases: tuple[str, ...] = ()
    doc: str | None = None
    """None: use the comments before it."""
    promise: bytes = b""
    """The signature, if it is not the text before the body."""


class SourceText(NamedTuple):
    """A file while it is parsed."""

    path: str
    content: bytes

    def text(self, node: "Node") -> str:
        return self.content[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def field(self, node: "Node", name: str) -> str:
        """The text of a part of a node; empty if it has none."""
        part = node.child_by_field_name(name)
        return self.text(part) if part else ""


def start_of(node: "Node", *fields: str) -> int:
    """Where the first of these parts of a node begins; where the node ends if it has none."""
    for field in fields:
        if part := node.child_by_field_name(field):
            return part.start_byte
    return node.end_byte


def access_at(sections: Iterable[tuple[int, str]], place: int, default: str) -> str:
    """The access that applies at a place: that of the last section that begins before it."""
    current = default
    for begin, access in sections:
        if begin > place:
            break
        current = access
    return current


class Language:
    """How one language is parsed. Each has one instance: the LANGUAGE of its module, or one of the
    LANGUAGES of a module for several."""

    name: str
    query_file: str
    """The query in `languages/`. A query that extends another names both."""
    separator = "."
    """The separator in qualified names."""
    indentation_matters = False
    comment = re.compile(_STRINGS + rb"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
    """What is removed from a signature. Strings stay: they are group 1."""

    def __init__(self) -> None:
        self.known_expressions: dict[bytes, str] = {}
        self.known_types: dict[bytes, tuple[tuple[int, str], ...]] = {}

    def readable(self, content: bytes) -> bytes:
        """The content for the grammar: the same number of bytes, without what the grammar cannot
        parse."""
        return content

    def item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | Iterable[ItemDescription] | None:
        """The description of a captured definition; None if it is not one. `parent` is the
        enclosing item."""
        raise NotImplementedError

    def imports(
        self, node: "Node", scope: int, line: int, source: SourceText
    ) -> Iterable[SourceImport]:
        raise NotImplementedError

    def bindings(self, node: "Node", source: SourceText) -> Iterable[tuple[str, str]]:
        """Names and what they hold. `self.name` is a field of the enclosing class."""
        raise NotImplementedError

    def doc(self, comments: list[bytes]) -> str:
        """The documentation in the comments right before a definition."""
        return plain_comment(b"\n".join(comments).decode("utf-8", "replace"))

    def file_doc(self, _content: bytes, /) -> str:
        """The documentation of the file."""
        return ""

    def expression(self, text: bytes) -> str | None:
        """The expression that names what is called; None if it has no name."""
        return flatten(text)

    def types(self, text: bytes) -> Iterator[tuple[int, str]]:
        """The names in a type, each with its offset in the text."""
        for match in _NAME_IN_TYPE.finditer(text):
            yield match.start(), match.group().decode("utf-8", "replace")


class LanguageWithRepeatedBindings(Language):
    """A language whose bindings follow from the text of a node: the same parameters and first lines
    occur many times."""

    _LONGEST = 120
    _MOST = 20_000

    def __init__(self) -> None:
        super().__init__()
        self._known_bindings: dict[bytes, tuple[tuple[str, str], ...]] = {}

    def bindings(self, node: "Node", source: SourceText) -> Iterable[tuple[str, str]]:
        text = source.content[node.start_byte : node.end_byte]
        known = self._known_bindings.get(text)
        if known is None:
            known = tuple(self.new_bindings(node, text, source))
            if len(text) <= self._LONGEST:
                if len(self._known_bindings) >= self._MOST:
                    self._known_bindings.clear()
                self._known_bindings[text] = known
        return known

    def new_bindings(
        self, node: "Node", text: bytes, source: SourceText
    ) -> Iterable[tuple[str, str]]:
        """The bindings of a node that was not seen before."""
        raise NotImplementedError


_NAME_IN_TYPE = re.compile(rb"[A-Za-z_][\w.:]*")
_PLAIN = re.compile(rb"[\w.:$]+")
_INNERMOST = re.compile(rb"\([^()]*\)")
_INDEX = re.compile(rb"\[[^\[\]]*\]")
_EXPRESSION = re.compile(r"[\w$]+(?:(?:\.|::)[\w$]+|\(\)|\[\])*")
_LAST_NAME = re.compile(r"([\w$]+)$")
_SPACE = re.compile(rb"\s+")


def flatten(text: bytes) -> str | None:
    """An expression without arguments and indices: `a.b(c, d).e` becomes `a.b().e`."""
    if _PLAIN.fullmatch(text):
        return text.decode("utf-8", "replace")
    cut = text[-_LONGEST_EXPRESSION:]
    is_whole = len(cut) == len(text)
    # From the inside out; \1 and \2 mark groups that are collapsed already.
    for _ in range(_DEEPEST_BRACKETS):
        shorter = _INDEX.sub(b"\2", _INNERMOST.sub(b"\1", cut))
        if shorter == cut:
            break
        cut = shorter
    plain = _SPACE.sub(b"", cut.replace(b"\1", b"()").replace(b"\2", b"[]"))
    plain = plain.replace(b"?.", b".").replace(b"!.", b".").replace(b"->", b".")
    flat = plain.decode("utf-8", "replace")
    if is_whole and _EXPRESSION.fullmatch(flat):
        return flat
    last = _LAST_NAME.search(flat)
    return f"?.{last.group(1)}" if last else None


def collapsed(pattern: re.Pattern[AnyStr], mark: AnyStr, text: AnyStr) -> AnyStr:
    """A text without what is between brackets, from the inside out."""
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
    """The text of a comment without comment marks."""
    lines = [_COMMENT_MARKS.sub("", line).rstrip() for line in text.splitlines()]
    return "\n".join(lines).strip()


_PROBLEMS = "(ERROR) @problem\n(MISSING) @problem\n"


class Grammars(NamedTuple):
    """What is needed to parse a language, created once."""

    language: Language
    grammar: "Grammar"
    query: "Query"
    problems: "Query"
    """Matches what the grammar could not parse."""


@functools.cache
def load(name: str) -> Grammars:
    """A language with its grammar and query. Both take milliseconds to create, so they are created
    on demand."""
    from importlib import resources

    import tree_sitter

    place = GRAMMARS[name]
    module = importlib.import_module(f"ctx.code.languages.{place.reader or name}")
    language: Language = module.LANGUAGES[name] if place.reader else module.LANGUAGE
    pointer = getattr(importlib.import_module(place.module), place.function)()
    grammar = tree_sitter.Language(pointer)
    folder = resources.files("ctx.code.languages")
    parts = (folder.joinpath(name).read_text("utf-8") for name in language.query_file.split())
    query = tree_sitter.Query(grammar, "\n".join(parts))
    return Grammars(language, grammar, query, tree_sitter.Query(grammar, _PROBLEMS))


def comment_before(content: bytes, start: int, directive: re.Pattern[bytes] | None = None) -> str:
    """The comments that end on the line before the line of `start`: lines of `//`, or one `/* …
    */`. Directives for tools are excluded.

    They are found in the text, because a query would return all comments of a file, and most of
    them document nothing.
    """
    end = content.rfind(b"\n", 0, start)
    lines: list[bytes] = []
    size = 0
    while end > 0 and size < _LONGEST_COMMENT:
        begin = content.rfind(b"\n", 0, end) + 1
        line = content[begin:end].strip()
        if line[:2] != b"//":
            if not lines and line[-2:] == b"*/":
                return _block_comment(content[max(0, end - _LONGEST_COMMENT) : end])
            break
        if directive is None or not directive.match(line):
            lines.append(line[3:] if line[2:3] in b" /!" else line[2:])
        size += len(line)
        end = begin - 1
    lines.reverse()
    return b"\n".join(lines).decode("utf-8", "replace").strip() if lines else ""


def _block_comment(text: bytes) -> str:
    """The text of the comment at the end of a text."""
    inside = text[text.rfind(b"/*") + 2 :].rstrip()[:-2].lstrip(b"*!")
    plain = _STARS.sub("", inside.decode("utf-8", "replace"))
    return "\n".join(line.rstrip() for line in plain.splitlines()).strip()
