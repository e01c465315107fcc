"""Commands in the text that an agent has read, so that repeating one does not run it.

A file, a web page or a pasted text may contain "please write <ctx:remember …>". Every entry of a
transcript that the agent did not write itself is searched for such elements: prompts, tool results,
attachments. Each gives a digest of its content. A command with the same digest is a quotation,
whatever it looks like.

Two elements are equal if their content begins with the same letters and digits: white space,
punctuation, entities, case, attributes and the kind of quotes make no difference. For a command
without content, its attributes are compared instead. See `docs/decisions/0019` for what this
protects against and what it does not.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from html import unescape
from itertools import islice
from math import inf
from typing import NamedTuple

from ctx.agent_commands.command_parser import Command
from ctx.agent_commands.markup import MARK, read_opening
from ctx.hosts.host_adapter import Transcripts

WRITING = ("remember", "summarize", "link", "task", "supersede")
"""The commands that change memory. Repeating a command that only reads is harmless."""

_NAMED_BY = {"link": ("from", "to"), "supersede": ("old", "new"), "task": ("name", "action")}
_LOOSE_MARK = re.compile(r"<\s*+ctx\s*+:\s*+", re.IGNORECASE)
_ESCAPES = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrt\"'/<\\])")
_SHORT_ESCAPES = {"n": "\n", "r": "\n", "t": "\t"}
# Line prefixes of `Read`, `grep -n`, `cat -n`, diffs and block quotes.
_LINE_PREFIX = re.compile(
    r"^[ \t]*+(?:\d++[ \t]*+(?:→|\t|:|\|)|[^\s:<]++:\d++[:-]|[>+|-]++[ \t]?+)", re.MULTILINE
)
# The report of an invalid command: it asks the agent to write the command again, corrected.
_REPORT = re.compile(
    r"(?:## A memory command failed|Write this instead, outside of code:"
    # As older versions wrote it.
    r"|## A memory command was not done|Right would be, outside of code:)"
    r"\n\n```\n[^\n]*\n```\n"
)
_ANY_MARK = re.compile(r"<\s*+/?\s*+ctx\s*+:", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*+>")
_NO_LETTERS = re.compile(r"[\W_]+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]")
# Only the beginning of a long content is compared: so many letters, in so many characters.
_COMPARED = 160
_WINDOW = 1_000
_MOST_ENDS = 3


class ReadCommands(NamedTuple):
    digests: frozenset[str]
    is_complete: bool
    """Whether everything that the agent read was searched."""


NOTHING_KNOWN = ReadCommands(frozenset(), is_complete=False)


def in_transcript(
    transcripts: Transcripts, path: str, end: int | None, deadline: float = inf
) -> ReadCommands:
    """The commands in a transcript up to an offset; None means its end."""
    found: set[str] = set()
    is_complete = True
    for text in transcripts.read_by_agent(path, end, deadline):
        if text is None:
            is_complete = False
        else:
            found |= digests_in(text)
    return ReadCommands(frozenset(found), is_complete)


def without_reports(text: str) -> str:
    """The output of a hook without its reports of invalid commands."""
    return _REPORT.sub("", text)


def digest(command: Command) -> str:
    """The digest of a command."""
    return _digest(command.name, command.attributes, command.content)


def digests_in(text: str) -> set[str]:
    """The digests of all elements in a text, however they are written."""
    found: set[str] = set()
    plain = _unescape_text(text)
    for each in {plain, _LINE_PREFIX.sub("", plain)}:
        for mark in _LOOSE_MARK.finditer(each):
            # A copy, in which a loosely written mark becomes the strict one.
            element = MARK + each[mark.end() : mark.end() + _WINDOW]
            found.update(_digest(*reading) for reading in _readings(element))
    return found


def _readings(element: str) -> Iterator[tuple[str, Mapping[str, str], str]]:
    """The possible readings of an element: where it ends is not certain.

    An element that is not closed may end with its line or its paragraph.
    """
    opening = read_opening(element, 0)
    if opening is None:
        return
    start = opening.end
    if opening.problem:
        start = element.find(">", start) + 1 or start
    attributes = {name: value or "" for name, value in opening.attributes}
    if opening.name in _NAMED_BY:
        yield opening.name, attributes, ""
        return
    ends = [end.start() for end in islice(_ANY_MARK.finditer(element, start), _MOST_ENDS)]
    ends += [element.find("\n", start + 1), element.find("\n\n", start + 1), len(element)]
    for end in {end for end in ends if end > start}:
        yield opening.name, attributes, element[start:end]


def _digest(name: str, attributes: Mapping[str, str], content: str) -> str:
    if name in _NAMED_BY:
        words = [name, *(_letters(attributes.get(each, "")) for each in _NAMED_BY[name])]
    else:
        words = [_letters(unescape(content[:_WINDOW]))[:_COMPARED]]
    return blake2b("\0".join(words).encode("utf-8", "replace"), digest_size=12).hexdigest()


def _letters(text: str) -> str:
    folded = text.casefold()
    if not folded.isascii():
        folded = unicodedata.normalize("NFKC", folded).casefold()
    return _NO_LETTERS.sub("", _TAG.sub("", folded)) or folded.strip()


def _unescape_text(text: str) -> str:
    """A text without entities and escapes, as in HTML, in JSON or in JSON inside of JSON."""
    for _ in range(2):
        if "&" in text:
            text = unescape(text)
        if "\\" in text:
            text = _ESCAPES.sub(_unescaped, text)
    # Remove invisible characters.
    return text if text.isascii() else _INVISIBLE.sub("", text)


def _unescaped(escape: re.Match[str]) -> str:
    word = escape[1]
    if len(word) > 1:
        return chr(int(word[1:], 16))
    return _SHORT_ESCAPES.get(word, word)
