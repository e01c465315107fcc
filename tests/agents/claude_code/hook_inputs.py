"""Inputs of a hook: valid events, damaged events, and other data.

Everything follows from a seed, so that failures can be reproduced.
"""

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.agents.claude_code.hook_processes import SAMPLES, line

# Not as UTF-8, but as JSON: half of a character that UTF-16 writes with two.
LONE = "\ud800"

NUMBERS = (None, True, 0, -1, 1e308, float("nan"), float("-inf"), 10**400)
TEXTS = ("", " ", "\n", "a\0b", LONE, f"a{LONE}b", "\\", '"', "é" * 1000, "x" * 5000)
NESTED: tuple[Any, ...] = ([], {}, [None], {"": None}, [[[[[]]]]], {"session_id": "inner"})
ODD_VALUES = (*NUMBERS, *TEXTS, *NESTED)
ODD_SESSIONS = (
    *".. . - -x .hidden ../../x /x a/b a\\b é x.stop x.receipt x.tmp x. cleared-1 ~ *".split(),
    *("a b", "a\nb", "x" * 128, "x" * 129, "x" * 300, "a\0b", LONE),
)
ODD_NAMES = ("source", "reason", "trigger", "prompt", "tool_name", "hook_event_name", "agent_id")


class Inputs:
    """The inputs of one hook in one place."""

    def __init__(self, seed: int, event: str, folder: Path) -> None:
        self._random = random.Random(f"{seed} {event}")
        self._event = event
        self._folder = folder
        self._places = odd_places(folder)
        self._samples = {
            path.stem: json.loads(path.read_bytes())
            for path in sorted(SAMPLES.glob("[A-Z]*.json"))
            # Large ones are for the few, not for the many.
            if path.stat().st_size < 10_000
        }
        mine = [name for name in self._samples if name.split(".")[0] == event]
        self._mine = mine
        assert mine, event

    def __iter__(self) -> Iterator[bytes]:
        makers: list[tuple[int, Callable[[], bytes]]] = [
            # What a store must be opened for is dear, and so there is less of it.
            (1, self._whole),
            (25, self._noise),
            (35, self._noise_in_braces),
            (45, self._cut_off),
            (6, self._damaged),
            (4, self._odd_value),
            (4, self._odd_session),
            (2, self._odd_place),
            (2, self._left_out),
            (2, self._duplicate_key),
            (1, self._another_event),
            (3, self._several),
            (1, self._nested),
        ]
        weights = [weight for weight, _ in makers]
        while True:
            _, make = self._random.choices(makers, weights)[0]
            yield make()

    def huge(self) -> Iterator[bytes]:
        """A few inputs that take long to build."""
        for name in ("prompt", "cwd", "session_id", "transcript_path", "anything"):
            for value in ("x" * 2_000_000, "\\" * 200_000, ["x"] * 100_000):
                yield line({**self._sample(), name: value})
        yield b"{" + b" " * 5_000_000 + b"}"
        yield b"x" * 5_000_000
        yield b'{"a":' * 200_000 + b"}" * 200_000
        yield b"{" + b"\0" * 5_000_000 + b"}"

    def _sample(self) -> dict[str, Any]:
        said: dict[str, Any] = self._samples[self._random.choice(self._mine)]
        return {**said, "cwd": str(self._folder)}

    def _whole(self) -> bytes:
        return line(self._sample())

    def _noise(self) -> bytes:
        return self._random.randbytes(self._random.choice((0, 1, 2, 10, 100, 1000)))

    def _noise_in_braces(self) -> bytes:
        return b"{" + self._noise() + b"}"

    def _cut_off(self) -> bytes:
        said = self._whole()
        return said[: self._random.randrange(len(said))] + self._random.choice((b"", b"}", b'"}'))

    def _damaged(self) -> bytes:
        said = bytearray(self._whole())
        for _ in range(self._random.choice((1, 1, 1, 5, 50))):
            at = self._random.randrange(len(said))
            match self._random.randrange(4):
                case 0:
                    said[at] = self._random.randrange(256)
                case 1:
                    said[at:at] = self._random.choice((b"\0", b'"', b"\\", b"\xff", b"\\ud800"))
                case 2:
                    del said[at : at + self._random.randrange(20)]
                case _:
                    said[at:at] = said[at : at + self._random.randrange(20)]
            said = said or bytearray(b"{}")
        return bytes(said)

    def _odd_value(self) -> bytes:
        told = self._sample()
        name = self._random.choice([*told, *ODD_NAMES])
        value = self._random.choice(ODD_VALUES)
        inner = told.get(name)
        if isinstance(inner, dict) and inner and self._random.random() < 0.5:
            value = {**inner, self._random.choice([*inner]): value}
        return self._escaped({**told, name: value})

    def _odd_session(self) -> bytes:
        chosen = self._random.choice((*ODD_SESSIONS, str(self._folder / "x")))
        return self._escaped({**self._sample(), "session_id": chosen})

    def _odd_place(self) -> bytes:
        name = self._random.choice(("transcript_path", "cwd"))
        return self._escaped({**self._sample(), name: self._random.choice(self._places)})

    def _left_out(self) -> bytes:
        told = self._sample()
        for name in self._random.sample([*told], self._random.randint(1, len(told))):
            del told[name]
        return line(told)

    def _duplicate_key(self) -> bytes:
        told = self._sample()
        name = self._random.choice([*told])
        other = json.dumps({name: self._random.choice(ODD_VALUES)}).encode()
        # The first one or the last one counts, depending on who reads it.
        whole = line(told).strip()
        return self._random.choice(
            (b"{" + other[1:-1] + b"," + whole[1:], whole[:-1] + b"," + other[1:])
        )

    def _another_event(self) -> bytes:
        return line(self._samples[self._random.choice([*self._samples])])

    def _several(self) -> bytes:
        between = self._random.choice((b"", b"\n", b",", b"\0", b"\xef\xbb\xbf"))
        return self._random.choice((b"", between)) + self._whole() + between + self._whole()

    def _nested(self) -> bytes:
        depth = self._random.choice((10, 900, 1100, 20_000))
        opening, closing = self._random.choice(((b"[", b"]"), (b'{"a":', b"}")))
        inner = opening * depth + b"1" + closing * depth
        return line(self._sample()).rstrip()[:-1] + b',"deep":' + inner + b"}"

    def _escaped(self, told: dict[str, Any]) -> bytes:
        """JSON in which everything outside of ASCII is escaped."""
        return json.dumps(told).encode()


def odd_places(folder: Path) -> tuple[str, ...]:
    """Paths with unexpected kinds of files."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    unreadable = folder / "unreadable"
    unreadable.write_text("{}\n")
    unreadable.chmod(0)
    loop = folder / "loop"
    loop.symlink_to(loop)
    sparse = folder / "sparse"
    sparse.touch()
    os.truncate(sparse, 1 << 40)
    return (
        *(str(each) for each in (folder, pipe, unreadable, loop, sparse, folder / "missing")),
        *("/dev/zero", "/dev/null", "/dev/full", "/dev/tty", "/proc/self/mem", "/", "//", "."),
        *("relative/path", "~", "~nobody/x", "x" * 5000, "/" + "x/" * 300, "/a\0b", f"/{LONE}"),
        *("", " ", "\n", "file:///etc/passwd", "C:\\x"),
    )
