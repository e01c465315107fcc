"""Code blocks, decisions and possible names in an answer.

An answer may be any text of any length. It is read once, line by line; unrecognised lines are
skipped, and every result is bounded.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

MOST_BLOCKS = 200
MOST_DECISIONS = 50
MOST_MENTIONS = 2_000

_LONGEST_DECISION = 500
_LONGEST_PARAGRAPH = 600
_LONGEST_WORD = 300
_LONGEST_LANGUAGE = 40
_FENCES = ("```", "~~~")
_DECISION = "decision"
_BEFORE = " \t>#*_+-0123456789.)("
_WORD = re.compile(r"`?[\w./:#-]+(?:\(\))?`?")
# `src/net.py:12`, `src/net.py:12-40`, `src/net.py#L12`.
_LINES = re.compile(r"(?::\d{1,9}(?:[-:]\d{1,9})?|#L\d{1,9}(?:-L?\d{1,9})?)\Z", re.ASCII)
_PATH = re.compile(r"[\w.@+-][\w./@+-]*\.[A-Za-z0-9]{1,10}", re.ASCII)
_WITHOUT_ENDING = frozenset({"Dockerfile", "Justfile", "Makefile"})
_FILE_NAME_KEYS = ("title=", "file=", "filename=", "path=")
_COMMENTS = "#/*-;<!> \t"


class CodeBlock(NamedTuple):
    """A code block in an answer."""

    language: str
    """The language as the answer writes it; may be empty."""
    path: str
    """The file that the code is for, if the answer names one."""
    first_line: int
    """Line of the answer, from 1; fence lines do not count."""
    last_line: int
    """Less than the first line for an empty block."""


class AnswerMention(NamedTuple):
    """A word that may name a file or a code item."""

    word: str
    line: int
    """The line of its first use."""


class AnswerParts(NamedTuple):
    paragraph: str
    """The first paragraph that is neither heading nor code."""
    code_blocks: tuple[CodeBlock, ...]
    decisions: tuple[str, ...]
    mentions: tuple[AnswerMention, ...]


def parse_answer(text: str) -> AnswerParts:
    """Parse an answer."""
    blocks: list[CodeBlock] = []
    prose: list[tuple[int, str]] = []
    opened: _OpenBlock | None = None
    lines = text.split("\n")
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if opened:
            if opened.ends_with(line):
                blocks.append(opened.block(number - 1, lines))
                opened = None
        elif fence := _fence(line):
            before = next((text for _, text in reversed(prose[-2:]) if text), "")
            opened = _OpenBlock(fence, line[len(fence) :].strip(), number + 1, before)
            prose.append((number, ""))
        else:
            prose.append((number, line))
    if opened:
        # The answer ended inside a code block.
        blocks.append(opened.block(len(lines), lines))
    named = [AnswerMention(block.path, block.first_line) for block in blocks if block.path]
    return AnswerParts(
        _paragraph(prose),
        tuple(blocks[:MOST_BLOCKS]),
        tuple(_decisions(prose)),
        tuple(_distinct(prose, named)),
    )


# Code


class _OpenBlock(NamedTuple):
    """A code block without its end."""

    fence: str
    info: str
    first_line: int
    before: str
    """The line before the block."""

    def ends_with(self, line: str) -> bool:
        return len(line) >= len(self.fence) and not line.strip(self.fence[0])

    def block(self, last_line: int, lines: list[str]) -> CodeBlock:
        first, _, rest = self.info[: 2 * _LONGEST_WORD].partition(" ")
        language, colon, path = first.partition(":")
        if _is_path(first):
            language, path = "", first
        named = next(
            (
                word.partition("=")[2].strip("\"'")
                for word in rest.split()
                if word.startswith(_FILE_NAME_KEYS)
            ),
            rest.strip(),
        )
        code = lines[self.first_line - 1] if self.first_line <= last_line else ""
        candidates = (
            path if colon or path else "",
            named,
            self.before[: 2 * _LONGEST_WORD].strip("#*_:` \t"),
            code[: 2 * _LONGEST_WORD].strip(_COMMENTS),
        )
        path = next((candidate for candidate in candidates if _is_path(candidate)), "")
        return CodeBlock(language[:_LONGEST_LANGUAGE], path, self.first_line, last_line)


def _fence(line: str) -> str:
    """The fence that opens a code block; empty if the line does not."""
    if not line.startswith(_FENCES):
        return ""
    rest = line.lstrip(line[0])
    if line[0] == "`" and "`" in rest:
        return ""
    return line[: len(line) - len(rest)]


def _is_path(word: str) -> bool:
    if not word or len(word) > _LONGEST_WORD:
        return False
    return word in _WITHOUT_ENDING or _PATH.fullmatch(word) is not None


# Decisions and the first paragraph


def _decisions(prose: list[tuple[int, str]]) -> Iterator[str]:
    """The text of lines that begin with `Decision:`, however they are formatted."""
    left = MOST_DECISIONS
    is_awaited = False
    for _, line in prose:
        if not left:
            return
        if is_awaited and line:
            text: str | None = line
        else:
            text = _decision_in(line)
        is_awaited = text == "" or (is_awaited and not line)
        if text and (decision := " ".join(text[: 2 * _LONGEST_DECISION].split()).strip("*_ ")):
            left -= 1
            yield decision[:_LONGEST_DECISION]


def _decision_in(line: str) -> str | None:
    """The decision on a line; empty if the next line holds it, None without a decision."""
    bare = line.lstrip(_BEFORE)
    if bare[: len(_DECISION)].lower() != _DECISION:
        return None
    rest = bare[len(_DECISION) :].lstrip(" 0123456789*_")
    return rest[1:].strip(" \t*_") if rest.startswith(":") else None


def _paragraph(prose: list[tuple[int, str]]) -> str:
    kept: list[str] = []
    length = 0
    for _, line in prose:
        is_text = bool(line) and not line.startswith("#")
        if (kept and not is_text) or length > _LONGEST_PARAGRAPH:
            break
        if is_text:
            kept.append(line[:_LONGEST_PARAGRAPH])
            length += len(kept[-1]) + 1
    text = " ".join(kept)
    if len(text) <= _LONGEST_PARAGRAPH:
        return text
    return f"{text[: _LONGEST_PARAGRAPH - 1].rstrip()}…"


# Names


def _distinct(prose: list[tuple[int, str]], named: list[AnswerMention]) -> Iterator[AnswerMention]:
    words: set[str] = set()
    for mention in (*named, *_mentions_in(prose)):
        if mention.word not in words:
            words.add(mention.word)
            yield mention
            if len(words) == MOST_MENTIONS:
                return


def _mentions_in(prose: list[tuple[int, str]]) -> Iterator[AnswerMention]:
    for number, line in prose:
        for match in _WORD.finditer(line):
            if word := _name(match[0]):
                yield AnswerMention(word, number)


def _name(raw: str) -> str:
    """The word without surrounding punctuation; empty if it cannot be a name."""
    if len(raw) > _LONGEST_WORD or "://" in raw:
        return ""
    is_quoted = raw[0] == "`" or raw[-1] == "`"
    bare = raw.strip("`")
    word = _LINES.sub("", bare.removesuffix("()").rstrip(".:#-/")).lstrip(":#-").rstrip(".:#-/")
    inner = word.strip("./")
    if not inner or not (inner[0].isalpha() or inner[0] == "_"):
        return ""
    if any(mark in inner for mark in ("/", "::", ".", "#")):
        return word
    if not word.isidentifier():
        return ""
    is_telling = len(word) > 2 and ("_" in word.strip("_") or word.lower() != word)
    return word if bare.endswith("()") or (is_quoted and is_telling) else ""
