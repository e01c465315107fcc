"""The words beside which secrets stand, and one search for all of them.

Python's `re` skips to the first letter of a pattern about as fast as `bytes.find` searches for a
word. So the words that share a letter are searched for together, by that letter: `k` is one in a
hundred characters of source code, and is part of five words.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache

SEEDS = (b"pseed", b"p_seed", b"p-seed", b"p.seed")  # Of `otp` and `totp`.
SIGNS = (b"login", b"log in", b"ctl add_user ", b"create_user ")
# Functions that take a password.
CALLS = (
    b"pdo(",
    b"securestring",
    b"nnect(",
    b"nnection(",
    b"crypt",
    b"create_user(",
    b"createuser(",
    b"create_superuser(",
    b"hashsync(",
)
_BY_LETTER = {
    b"k": (b"key", b"kennwort", b"adgangskode", b"token", b"cookie", b"psk"),
    b"p": (
        b"pass",
        b"pw",
        b"pin",
        b"phrase",
        b"pepper",
        b"_pat",
        b"puk",
        b"parola",
        CALLS[0],
        *SEEDS,
    ),
    b"c": (
        b"cred",
        b"secret",
        b"mnemonic",
        b"code",
        b"community",
        b"clave",
        *CALLS[1:],
        *SIGNS[2:],
    ),
    b"h": (b"senha", b"auth", b"heslo"),
    b"l": (b"salt", *SIGNS[:2]),
    b"b": (b"bearer", b"identified by"),
    b"w": (b"assword", b"wachtwoord"),
    b"@": (b"@",),
    b"*": (b":*:",),
}

# "key" is common, and is a keyword only after one of these.
KEY_OF = (
    "access account activation admin api app application auth backup client consumer cookie "
    "crypto decryption deploy encryption gossip hmac ingest integration jwt kms license master "
    "network private product project secret security server recovery registration service session "
    "shared signing ssh storage subscription unlock unseal webhook wifi wlan wpa fi"
).split()
# The same for other common words.
QUALIFIERS = {
    "key": KEY_OF,
    "code": (
        "recovery backup unlock security access door alarm verification activation emergency "
        "scratch pin"
    ).split(),
    "phrase": "seed recovery secret backup mnemonic wallet".split(),
}
_QUALIFIERS = {
    word.encode(): tuple(before.encode() for before in all_before)
    for word, all_before in QUALIFIERS.items()
}


def _qualified(word: bytes) -> bytes:
    ends = b"|".join({before[-2:] for before in _QUALIFIERS[word]})
    return b"(?:(?<=(?:%b)%b)|(?<=(?:%b)[ _.-]%b))" % (ends, word, ends, word)


_Matches = dict[bytes, tuple[bytes, int]]
"""What a search matches: the word, and how many of its characters precede the match."""


_Search = tuple[bytes, Callable[[bytes], Iterator[re.Match[bytes]]], _Matches]


class Positions(dict[bytes, list[int]]):
    """The positions of each keyword in a text."""

    def __missing__(self, word: bytes) -> list[int]:
        return []


def find_keywords(lower: bytes) -> Positions:
    """The positions of each keyword in a lower-case text."""
    positions = Positions()
    for letter, find, matches in _searches():
        if letter in lower:
            for m in find(lower):
                word, before = matches[m[0]]
                at = m.start() - before
                if word not in _QUALIFIERS or _is_qualified(lower, at, _QUALIFIERS[word]):
                    positions.setdefault(word, []).append(at)
    return positions


def _is_qualified(lower: bytes, at: int, qualifiers: tuple[bytes, ...]) -> bool:
    if lower[at - 1 : at + 3] in (b"_key", b"-key"):
        return True
    end = at - 1 if lower[at - 1 : at] in (b" ", b"_", b".", b"-") else at
    return lower.endswith(qualifiers, 0, end)


@cache
def _searches() -> list[_Search]:
    # Compiled when first needed: at import this would cost more than the import.
    return [_search(letter, words) for letter, words in _BY_LETTER.items()]


def _search(letter: bytes, words: tuple[bytes, ...]) -> _Search:
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
        if word in _QUALIFIERS:
            alternatives[-1] += _qualified(word)
        if word == b"key":
            alternatives[-1] = alternatives[-1][:-1] + b"|(?<=[_-]key))"
        if word in (b"pin", b"_pat", b"puk"):
            alternatives[-1] += b"(?![a-z])"
        matches[letter + rest] = word, len(lead)
    pattern = re.compile(re.escape(letter) + b"(?:%b)" % b"|".join(alternatives))
    return letter, pattern.finditer, matches
