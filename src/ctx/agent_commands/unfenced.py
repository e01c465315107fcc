"""Finds code that stands in an answer without a fence: diffs, merge conflicts, heredocs, YAML and
mathematics.

A line of prose that only looks like the beginning of one quotes nothing. They end, with their first
and last lines quoted too, at

    heredoc, patch, merge conflict, environment (`\\begin{align}`)
                    the line that closes it. If there is none, a heredoc at the end of a line quotes
                    the rest of its paragraph
    diff            the first line without `+`, `-` or a space, or a blank line behind as many lines
                    as the head of the hunk announces
    YAML            the first line that is neither a key nor below one. It needs two keys in lower
                    case, a block (`key: |`), or `---` before and behind it in its paragraph
    mathematics     the next `$$`, `\\[` or `\\]` at an edge of a line. A single one quotes nothing;
                    of an odd number, all from the first to the last is quoted
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from ctx.agent_commands.markup import Span
from ctx.agent_commands.prose import Blocks

_LEAD = re.compile(r"[ \t]*(?:(?:[*+-]|\d{1,9}[.)])[ \t]+)*")
_HEREDOC = re.compile(r"""(?<!<)<<([-~]?) ?\\?(["']?)([A-Za-z_]\w*)\2(?=[ \t|&;<>)]|$)""")
_DIFF = re.compile(r"@@+(?: |$)|diff --git \S+ \S+$|--- \S")
_HUNK = re.compile(r"@@+ -\d+(?:,(\d{1,6}))? \+\d+(?:,(\d{1,6}))? @@")
_DIFF_LINE = re.compile("[+ \t\\\\-]|diff |index |new |deleted |old |similarity |rename |copy ")
_KEY = re.compile(
    r""" *((?:- +)*)(["']?)(?:[a-z_][\w.-]*\2 *:(?: +|$)|[\w.-]+\2 *: +(?=[|>]))([|>][-+\d]*$)?"""
)
_MATHEMATICS = re.compile(r"(?<!\\)(?:\$\$|\\[\[\]])")
_ENVIRONMENT = re.compile(r"\\begin(\{[a-z]{1,20}\*?\})")
_CONFLICT, _CONFLICT_END = "<<<<<<< ", ">>>>>>> "
_MARKS = ("$$", "\\[", "\\]")
_YAML_ENDS = ("", "---", "...")
_LONGEST_END = 100


def find(blocks: Blocks) -> list[Span]:
    """The code among the paragraphs of an answer."""
    unfenced = _Unfenced(blocks)
    starts = [0, *accumulate(len(line) + 1 for line in blocks.source.split("\n"))]
    spans: list[Span] = []
    edges: list[int] = []
    end = 0
    for at in sorted(blocks.prose):
        if at < end:
            continue
        if end := unfenced.end(at):
            spans.append((starts[at], starts[end]))
            continue
        line = unfenced.lines[at]
        marks = [starts[at] + mark.start() for mark in _outside_of_code(_MATHEMATICS, line)]
        spans += zip(marks[:1], marks[-1:], strict=True)
        if len(marks) % 2 and (line.endswith(_MARKS) or line.startswith(_MARKS, _lead(line))):
            edges.append(marks[-1])
    if len(edges) % 2:
        edges = [edges[0], edges[-1]]
    return [*spans, *zip(edges[::2], edges[1::2], strict=True)]


class _Unfenced:
    """Tells by line which other line ends the code that begins there; 0: none begins there."""

    def __init__(self, blocks: Blocks) -> None:
        self.lines = [*(line.rstrip() for line in blocks.source.split("\n")), ""]
        self._prose = blocks.prose
        self._yaml_is_read_to = 0
        self._ends: dict[str, list[int]] = {}
        """By text: the lines that may close something. A tab stands for any indentation."""
        for number, line in enumerate(self.lines):
            if number not in blocks.fenced and len(line) < _LONGEST_END:
                self._ends.setdefault(line, []).append(number + 1)
                plain = line.strip()
                plain = _CONFLICT_END if plain.startswith(_CONFLICT_END) else plain
                self._ends.setdefault(f"\t{plain}", []).append(number + 1)

    def end(self, at: int) -> int:
        """The number of the line after the code that begins in a line of a paragraph."""
        lead = _lead(self.lines[at])
        return self._closed_end(at, lead) or self._diff_end(at, lead) or self._yaml_end(at)

    def _after(self, text: str, start: int) -> int:
        numbers = self._ends.get(text, [])
        index = bisect_left(numbers, start + 1)
        return numbers[index] if index < len(numbers) else 0

    def _closed_end(self, at: int, lead: int) -> int:
        line, end = self.lines[at], 0
        if line.startswith("*** Begin Patch", lead):
            return self._after("\t*** End Patch", at)
        if line.startswith(_CONFLICT, lead):
            return self._after(f"\t{_CONFLICT_END}", at)
        if environment := _ENVIRONMENT.match(line, lead):
            return self._after(f"\t\\end{environment[1]}", at)
        for found in _outside_of_code(_HEREDOC, line):
            word = f"\t{found[3]}" if found[1] or lead else found[3]
            end = self._after(word, end or at + 1) or end
            if not end and found.end() == len(line):
                end = at + 1
                while end in self._prose:
                    end += 1
        return end

    def _diff_end(self, at: int, lead: int) -> int:
        head = self.lines[at][lead:]
        if not _DIFF.match(head) or (head[0] == "-" and self._body(at + 1, lead)[:4] != "+++ "):
            return 0
        announced, end = _announced(head), at + 1
        for number in range(at + 1, len(self.lines)):
            line = self._body(number, lead)
            if line[:2] == "@@":
                announced = _announced(line)
            elif not _DIFF_LINE.match(line) if line else announced <= 0:
                break
            else:
                announced -= 2 if line[:1] in ("", " ") else 1
            end = number + 1 if line else end
        return end

    def _body(self, number: int, indent: int) -> str:
        line = self.lines[number]
        return line if line[:indent].strip() else line[indent:]

    def _yaml_end(self, at: int) -> int:
        first = _KEY.match(self.lines[at])
        if not first or at < self._yaml_is_read_to:
            return 0
        if at and self.lines[at - 1] == "---":
            end = next(
                each for each in range(at, len(self.lines)) if self.lines[each] in _YAML_ENDS
            )
            if self.lines[end]:
                return end + 1
        depth, end = _indent(self.lines[at]), at
        keys: list[re.Match[str]] = []
        takes_items = is_apart = False
        for number in range(at, len(self.lines)):
            line = self.lines[number]
            if not line or line.lstrip()[0] == "#":
                is_apart = is_apart or not line
                continue
            key, indent = _KEY.match(line), _indent(line)
            is_item = line.startswith("- ", indent)
            is_below = indent > depth or (is_item and takes_items and not is_apart)
            if not is_below and not (key and indent == depth and key[1] == first[1]):
                break
            keys += [key] if key else []
            if indent == depth:
                takes_items = is_item or line.endswith(":")
            is_apart, end = False, number + 1
        self._yaml_is_read_to = end
        is_yaml = any(key[3] for key in keys) or (len(keys) > 1 and not all(key[1] for key in keys))
        return end if is_yaml else 0


def _announced(head: str) -> int:
    """How many lines the head of a hunk announces, in its old and its new text together."""
    found = _HUNK.match(head)
    return int(found[1] or 1) + int(found[2] or 1) if found else 0


def _lead(line: str) -> int:
    """The width of the indentation and of the marks of a list."""
    found = _LEAD.match(line)
    return found.end() if found else 0


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _outside_of_code(pattern: re.Pattern[str], line: str) -> Iterator[re.Match[str]]:
    """The matches in a line outside of code spans."""
    at = ticks = 0
    for found in pattern.finditer(line):
        ticks += line.count("`", at, found.start())
        at = found.start()
        if ticks % 2 == 0:
            yield found
