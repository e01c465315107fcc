"""The words beside which secrets stand, and one search for all of them.

Python's `re` skips to the first letter of a pattern about as fast as `bytes.find` searches for a
word. So the words that share a letter are searched for together, by that letter: `k` is one in a
hundred characters of source code, and is part of five words.
"""

import re
from functools import cache

_BY_LETTER = {
    b"k": (b"key", b"kennwort", b"token", b"cookie", b"psk"),
    b"p": (b"pass", b"pw"),
    b"c": (b"cred", b"secret", b"wachtwoord"),
    b"h": (b"senha", b"auth"),
    b"b": (b"bearer", b"identified by"),
    b":": (b"://", b":*:"),
}
KEYWORDS = tuple(word for words in _BY_LETTER.values() for word in words)

_Matches = dict[bytes, tuple[bytes, int]]
"""What a search matches: the word, and how many of its characters precede the match."""


def find_keywords(lower: bytes) -> dict[bytes, list[int]]:
    """The positions of each keyword in a lower-case text."""
    positions: dict[bytes, list[int]] = {word: [] for word in KEYWORDS}
    for pattern, matches in _searches():
        for m in pattern.finditer(lower):
            word, before = matches[m[0]]
            positions[word].append(m.start() - before)
    return positions


@cache
def _searches() -> list[tuple[re.Pattern[bytes], _Matches]]:
    # Compiled when first needed: at import this would cost more than the import.
    return [_search(letter, words) for letter, words in _BY_LETTER.items()]


def _search(letter: bytes, words: tuple[bytes, ...]) -> tuple[re.Pattern[bytes], _Matches]:
    alternatives: list[bytes] = []
    matches: _Matches = {}
    for word in words:
        lead, _, rest = word.partition(letter)
        if letter in rest:  # The next word may begin there: `:*://`.
            alternatives.append(b"(?=%b)" % re.escape(rest))
            rest = b""
        else:
            alternatives.append(re.escape(rest))
        if lead:
            alternatives[-1] += b"(?<=%b)" % re.escape(lead + letter + rest)
        matches[letter + rest] = word, len(lead)
    return re.compile(re.escape(letter) + b"(?:%b)" % b"|".join(alternatives)), matches
