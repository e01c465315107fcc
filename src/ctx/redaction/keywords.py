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
    b"@": (b"@",),
    b"*": (b":*:",),
}
KEYWORDS = tuple(word for words in _BY_LETTER.values() for word in words)

# "key" is common, and is a keyword only after one of these.
KEY_OF = (
    "access account admin api app application auth client consumer cookie crypto decryption deploy "
    "encryption hmac ingest integration jwt license master private project secret security server "
    "recovery service session shared signing ssh storage subscription unlock unseal webhook"
).split()
_QUALIFIERS = tuple(word.encode() for word in KEY_OF)
_QUALIFIED = b"(?:(?<=(?:%b)key)|(?<=(?:%b)[ _.-]key))" % (
    (b"|".join({word[-2:] for word in _QUALIFIERS}),) * 2
)

_Matches = dict[bytes, tuple[bytes, int]]
"""What a search matches: the word, and how many of its characters precede the match."""


def find_keywords(lower: bytes) -> dict[bytes, list[int]]:
    """The positions of each keyword in a lower-case text."""
    positions: dict[bytes, list[int]] = {word: [] for word in KEYWORDS}
    for pattern, matches in _searches():
        for m in pattern.finditer(lower):
            word, before = matches[m[0]]
            positions[word].append(m.start() - before)
    positions[b"key"] = [at for at in positions[b"key"] if _is_qualified(lower, at)]
    return positions


def _is_qualified(lower: bytes, key: int) -> bool:
    end = key - 1 if lower[key - 1 : key] in (b" ", b"_", b".", b"-") else key
    return lower.endswith(_QUALIFIERS, 0, end)


@cache
def _searches() -> list[tuple[re.Pattern[bytes], _Matches]]:
    # Compiled when first needed: at import this would cost more than the import.
    return [_search(letter, words) for letter, words in _BY_LETTER.items()]


def _search(letter: bytes, words: tuple[bytes, ...]) -> tuple[re.Pattern[bytes], _Matches]:
    alternatives: list[bytes] = []
    matches: _Matches = {}
    for word in words:
        lead, _, rest = word.partition(letter)
        if letter in rest or rest == b":":  # The next word may begin there: `:*:*:`.
            alternatives.append(b"(?=%b)" % re.escape(rest))
            rest = b""
        else:
            alternatives.append(re.escape(rest))
        if lead:
            alternatives[-1] += b"(?<=%b)" % re.escape(lead + letter + rest)
        if word == b"key":
            alternatives[-1] += _QUALIFIED
        matches[letter + rest] = word, len(lead)
    return re.compile(re.escape(letter) + b"(?:%b)" % b"|".join(alternatives)), matches
