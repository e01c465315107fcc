"""Names of things: kinds of text that a type checker keeps apart.

`ObjectId` is the BLAKE3 hash of an object, 64 lowercase hexadecimal characters. `NodeId` is a
ULID: 26 characters that sort by the time they were made. `SessionId` is whatever the agent
calls its session, in characters that can stand in a file name.
"""

import os
from _thread import allocate_lock  # The module threading would add a millisecond to each start.
from typing import NewType

from ctx import clock
from ctx.errors import UsageError

ObjectId = NewType("ObjectId", str)
Ulid = NewType("Ulid", str)
NodeId = NewType("NodeId", Ulid)
SessionId = NewType("SessionId", str)

OBJECT_ID_LENGTH = 64
SHOWN_LENGTH = 12
SHORTEST_PREFIX = 4
CLI_SESSION = SessionId("cli")

_HEX = frozenset("0123456789abcdef")
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_SESSION_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_LONGEST_SESSION = 128
_RANDOM_BITS = 80
_HIDDEN_BITS = 5 * (26 - SHOWN_LENGTH)
_HIDDEN_MASK = (1 << _HIDDEN_BITS) - 1
_COUNTED_BITS = _RANDOM_BITS - _HIDDEN_BITS
_COUNTED_MASK = (1 << _COUNTED_BITS) - 1
_RANDOM_DIGITS = (_CROCKFORD * 8).encode("ascii")
"""Turns random bytes into random digits: each digit stands for eight of the 256 bytes."""


def is_object_id(text: str) -> bool:
    return len(text) == OBJECT_ID_LENGTH and _HEX.issuperset(text)


def object_id(text: str) -> ObjectId:
    if not is_object_id(text):
        raise UsageError(f"{text[:80]!r} is not an object id: 64 characters of 0-9a-f.")
    return ObjectId(text)


def object_prefix(text: str) -> str:
    """A shortened object id as a person types it, checked and in lower case."""
    prefix = text.lower()
    if not SHORTEST_PREFIX <= len(prefix) <= OBJECT_ID_LENGTH or not _HEX.issuperset(prefix):
        raise UsageError(
            f"{text[:80]!r} is not an object id or its beginning.",
            hint=f"Give at least {SHORTEST_PREFIX} characters of 0-9a-f.",
        )
    return prefix


def short(name: str) -> str:
    """An id as it is shown to people."""
    return name[:SHOWN_LENGTH]


def session_id(text: str) -> SessionId:
    if (
        not 0 < len(text) <= _LONGEST_SESSION
        or not _SESSION_CHARACTERS.issuperset(text)
        or text[0] in ".-"
        or text.endswith((".tmp", "."))
    ):
        raise UsageError(
            f"{text[:80]!r} cannot name a session.",
            hint="Use up to 128 letters, digits, dots, dashes and underscores.",
        )
    return SessionId(text)


def is_ulid(text: str) -> bool:
    return len(text) == 26 and text[0] in "01234567" and not text.strip(_CROCKFORD)


class UlidSource:
    """ULIDs that grow strictly within a process, also inside one millisecond.

    Within a millisecond, what is shown of an id is counted up and the rest is random again: so
    nodes that were made together can be told apart by their short ids. When the wall clock
    steps back, the last millisecond is kept.
    """

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._last = 0

    def next(self) -> Ulid:
        with self._lock:
            fresh = clock.now_ms() << _RANDOM_BITS | int.from_bytes(os.urandom(10), "big")
            same_or_earlier = fresh >> _RANDOM_BITS <= self._last >> _RANDOM_BITS
            counted = (self._last >> _HIDDEN_BITS) + 1 << _HIDDEN_BITS | fresh & _HIDDEN_MASK
            self._last = counted if same_or_earlier else fresh
            return _encode(self._last)

    def next_many(self, count: int) -> list[Ulid]:
        """Several ULIDs at once, in order: much cheaper than one at a time."""
        with self._lock:
            random = int.from_bytes(os.urandom(2), "big") & _COUNTED_MASK
            fresh = clock.now_ms() << _COUNTED_BITS | random
            last = self._last >> _HIDDEN_BITS
            same_or_earlier = fresh >> _COUNTED_BITS <= last >> _COUNTED_BITS
            shown = last + 1 if same_or_earlier else fresh
            self._last = shown + count - 1 << _HIDDEN_BITS
        length = 26 - SHOWN_LENGTH
        hidden = os.urandom(length * count).translate(_RANDOM_DIGITS).decode("ascii")
        made: list[Ulid] = []
        time, time_digits = -1, ""
        for number in range(shown, shown + count):
            if number >> _COUNTED_BITS != time:
                time = number >> _COUNTED_BITS
                time_digits = _encode(time << _RANDOM_BITS)[: SHOWN_LENGTH - 2]
            at = length * len(made)
            counted = _pairs[number & _COUNTED_MASK]
            made.append(Ulid(f"{time_digits}{counted}{hidden[at : at + length]}"))
        return made

    def forget(self) -> None:
        """Start anew: a forked child must not count on from its parent's last id."""
        self._lock = allocate_lock()
        self._last = 0


def derived_ulid(ms: int, name: str) -> Ulid:
    """The ULID of something that another program made: the same each time it is asked for."""
    import hashlib

    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=10).digest()
    at = min(max(ms, 0), (1 << 48) - 1)
    return _encode(at << _RANDOM_BITS | int.from_bytes(digest, "big"))


def anchor_id(kind: str, name: str) -> NodeId:
    """The node that stands for a thing in the code: the same wherever it is mentioned first.

    Its id comes before all that were made at some time, so that what is new is not beneath it.
    """
    import hashlib

    told = f"{kind}\0{name}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(told, digest_size=15).digest()
    return NodeId(_encode(int.from_bytes(digest, "big")))


_pairs: list[str] = []
_SHIFTS = range(120, -1, -10)


def _encode(value: int) -> Ulid:
    if not _pairs:
        # All pairs of digits: a large change makes many ids.
        _pairs.extend(first + second for first in _CROCKFORD for second in _CROCKFORD)
    return Ulid("".join([_pairs[value >> shift & 1023] for shift in _SHIFTS]))


def ulid_ms(ulid: Ulid) -> int:
    """The time at which a ULID was made, in milliseconds."""
    value = 0
    for character in ulid[:10]:
        value = value << 5 | _CROCKFORD.index(character)
    return value


_source = UlidSource()
os.register_at_fork(after_in_child=_source.forget)

new_ulid = _source.next
new_ulids = _source.next_many


def new_node_id() -> NodeId:
    return NodeId(new_ulid())
