"""The words of a simple command: its settings, its wrappers, and the program behind them."""

import posixpath
import re
from collections.abc import Sequence

_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s'"]|['"])+""")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_REDIRECTION = re.compile(r"(?:[0-9]*|&)(?:>>?|<)")
_ONLY_PRINTS = frozenset(
    "NO_COLOR FORCE_COLOR CLICOLOR COLUMNS TERM RUST_BACKTRACE RUST_LOG PYTHONUNBUFFERED"
    " PYTHONDONTWRITEBYTECODE".split()
)
_OPENS = frozenset({"(", "{", "!", "then", "do", "else", "if", "while"})
_NEUTRAL = frozenset("time nice nohup command exec env timeout gtimeout stdbuf caffeinate".split())
"""Wrappers that do not change the outcome of a command."""
_THROUGH: dict[str, tuple[str, ...]] = {
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "hatch": ("run",),
    "pdm": ("run",),
    "rye": ("run",),
    "bundle": ("exec",),
    "npx": (),
    "bunx": (),
    "pnpx": (),
    "uvx": (),
    "sudo": (),
    "xvfb-run": (),
    **dict.fromkeys(_NEUTRAL, ()),
}
"""Wrapper commands, and the words that may follow them before the wrapped command."""


def raw_words(command: str) -> list[str]:
    """The words of a simple command as typed, without redirections."""
    found: list[str] = []
    skips = False
    for piece in _WORD.finditer(command.replace("\\\n", " ")):
        word = piece[0]
        if skips:
            skips = False
        elif _REDIRECTION.match(word):
            skips = word.endswith((">", "<"))
        elif word != "&" and not (not found and word in _OPENS):
            found.append(word)
    if found and found[-1].endswith("&") and not found[-1].endswith("&&"):
        found[-1] = found[-1].rstrip("&")
    return [word for word in found if word]


def unquoted(words: Sequence[str]) -> list[str]:
    plain = (word.replace("'", "").replace('"', "") for word in words)
    return [word for word in plain if word]


def variable(word: str) -> str:
    """The environment variable that a word sets, unless it only affects output."""
    name = word.partition("=")[0] if _ASSIGNMENT.match(word) else ""
    return "" if name in _ONLY_PRINTS else name


def is_assignment(word: str) -> bool:
    return _ASSIGNMENT.match(word) is not None


def program_index(words: Sequence[str]) -> int:
    """The index of the program behind settings and wrappers; the number of words if none."""
    index = 0
    while index < len(words):
        program = posixpath.basename(words[index])
        if is_assignment(words[index]):
            index += 1
        elif program in _THROUGH:
            between = _THROUGH[program]
            index += 1
            while index < len(words) and (
                words[index] in between
                or words[index].startswith("-")
                or words[index][:1].isdigit()
            ):
                index += 1
            if between and words[index - 1] not in between:
                return len(words)
        else:
            break
    return index


def prefix(words: Sequence[str]) -> list[str]:
    """The settings and wrappers of a command, without those that do not change its outcome."""
    kept: list[str] = []
    is_neutral = False
    for word in words:
        if is_assignment(word):
            kept += [word] if variable(word) else []
            continue
        program = posixpath.basename(word)
        if program in _THROUGH:
            is_neutral = program in _NEUTRAL
        if not is_neutral:
            kept.append(word)
    return kept
