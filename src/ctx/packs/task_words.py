"""Find the words of a task in the lines of a text."""

import re
from collections.abc import Iterable, Mapping

from ctx import terms

_WORD = re.compile(r"\w+")
_MOST_BEGUN = 200
_FEW_BEGUN = 32
"""Searching for so few words one by one is faster than splitting the text."""
_NO_WORD = "".join(
    chr(code) if chr(code).isalnum() or chr(code) == "_" else " " for code in range(128)
)
"""Maps ASCII characters so that spaces separate the words."""


class TaskWords(dict[str, tuple[str, ...]]):
    """Maps each word to the terms of the task that it stands for; most words have none."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights
        # For most words, checking the first letters is enough.
        self.begun = sorted(set(map(terms.stem_prefix, weights)))
        few = "|".join(map(re.escape, self.begun)) if len(self.begun) <= _MOST_BEGUN else ""
        self._begins = re.compile(few)

    def __missing__(self, word: str) -> tuple[str, ...]:
        matching: tuple[str, ...] = ()
        if not word.isascii() or self._begins.search(word.lower()) is not None:
            matching = tuple(
                [term for term in dict.fromkeys(terms.extract(word)) if term in self._weights]
            )
        self[word] = matching
        return matching


def lines_with(text: str, words: TaskWords) -> dict[int, dict[str, int]]:
    """The lines that contain words of the task, with the count of each."""
    if not text.isascii():
        # Few lines are not ASCII, and only those are split into words.
        every = text.split("\n")
        foreign = {place: line for place, line in enumerate(every) if not line.isascii()}
        lines = lines_with("\n".join([line * line.isascii() for line in every]), words)
        for place, line in foreign.items():
            if counted := _count_words(_WORD.findall(line), words):
                lines[place + 1] = counted
        return lines
    lines = {}
    number, at = 1, 0
    for start, matching in _words_in(text, words):
        number += text.count("\n", at, start)
        at = start
        here = lines.get(number)
        if here is None:
            lines[number] = dict.fromkeys(matching, 1)
            continue
        for term in matching:
            here[term] = here.get(term, 0) + 1
    return lines


def _count_words(every: Iterable[str], words: TaskWords) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in every:
        for term in words[word]:
            counts[term] = counts.get(term, 0) + 1
    return counts


def _words_in(text: str, words: TaskWords) -> list[tuple[int, tuple[str, ...]]]:
    """The positions of the words in an ASCII text that stand for terms of the task, in order, with
    these terms."""
    if len(words.begun) > _FEW_BEGUN:
        telling = {word: matching for word in set(_WORD.findall(text)) if (matching := words[word])}
        every = _WORD.finditer(text)
        return [(match.start(), telling[match[0]]) for match in every if match[0] in telling]
    lower, apart = text.lower(), text.translate(_NO_WORD)
    by_start: dict[int, tuple[str, ...]] = {}
    for begun in words.begun:
        at = lower.find(begun)
        while at >= 0:
            if text[at] > "Z" and text[at - 1 : at].isalnum():
                # No part of a name begins here.
                at = lower.find(begun, at + 1)
                continue
            start = apart.rfind(" ", 0, at) + 1
            end = apart.find(" ", at)
            end = len(text) if end < 0 else end
            if start not in by_start and (matching := words[text[start:end]]):
                by_start[start] = matching
            at = lower.find(begun, end)
    return sorted(by_start.items())
