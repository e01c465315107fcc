"""The patterns of `.gitignore` files, with git's semantics.

Each pattern becomes a regular expression that never backtracks beyond one name: patterns come
with a clone, and `*a*a*a*a*b` must not take exponential time. What is between two stars has a fixed
length, so its first match is as good as any later one, and the expression can commit to it.

One difference to git is intended: `?` and `[…]` match a character, not a byte.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

LARGEST = 128 * 1024
"""How much of a file of patterns is read: an untrusted one may have any size, and each pattern
takes time."""

_STARS = "*"
"""In a list of pieces: any characters within one name. All other pieces match one character."""

_ANY_FOLDERS = "**"

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t-\\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


_LONGEST = 4096
"""No system opens a longer path."""

_ANYWHERE = r"(?>(?:[^/]++/(?!\Z))*)"
_LITERAL_TOP = re.compile(r"/?([^*?\[\\/]+/)[^/]")


class PatternBlock(NamedTuple):
    """Consecutive patterns with the same effect."""

    ignores: bool
    matches: re.Pattern[str]
    start: int
    """The length of the path of the folder that the patterns belong to."""
    folders: frozenset[str] | None
    """The only subfolders, each with a slash, in which anything can match; None for any. For most
    of a repository this avoids testing whether it is in `target/`."""


Rules: TypeAlias = tuple[PatternBlock, ...]
"""The rules of a folder. The first block that matches a path decides, so blocks of a deeper folder
come before those of its parents, and a later line before an earlier one."""


def read_patterns(content: bytes, start: int = 0) -> Rules:
    """The rules in the bytes of a `.gitignore`, up to a maximum size."""
    if len(content) > LARGEST:
        content = content[: content.rfind(b"\n", 0, LARGEST) + 1]
    text = content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    return compile_rules((line.removesuffix("\r") for line in text.split("\n")), start)


def compile_rules(lines: Iterable[str], start: int = 0) -> Rules:
    """The rules in some lines. An invalid pattern matches nothing."""
    groups: list[tuple[bool, list[str]]] = []
    for line in lines:
        if line.startswith("#"):
            continue
        kept = line.rstrip(" ")
        escapes = len(kept) - len(kept.rstrip("\\"))
        # A space after a backslash is part of the name, unless the backslash is escaped itself.
        pattern = kept + " " if escapes % 2 and len(kept) < len(line) else kept
        ignores = not pattern.startswith("!")
        if not groups or groups[-1][0] != ignores:
            groups.append((ignores, []))
        groups[-1][1].append(pattern if ignores else pattern[1:])
    blocks = (_block(ignores, some, start) for ignores, some in reversed(groups))
    return tuple(block for block in blocks if block)


def verdict(rules: Rules, path: str) -> bool | None:
    """Whether a path is ignored; None if no pattern matches. The path of a folder ends with a
    slash. The content of an ignored folder is ignored too: the caller does not enter it."""
    for block in rules:
        if block.matches.fullmatch(path, block.start):
            return block.ignores
    return None


def ignores(rules: Rules, path: str) -> bool:
    """Whether a file is ignored, by its own path or because a parent folder is."""
    folders = (path[: at + 1] for at, character in enumerate(path) if character == "/")
    return any(verdict(rules, folder) for folder in folders) or bool(verdict(rules, path))


def rules_in_folder(rules: Rules, folder: str) -> Rules:
    """The rules of the parent folder that can match anything in a folder."""
    return tuple(
        block
        for block in rules
        if block.folders is None
        or folder[block.start : folder.find("/", block.start) + 1] in block.folders
    )


def _block(ignores: bool, some: Iterable[str], start: int) -> PatternBlock | None:
    meant = {pattern: part for pattern in some if (part := expression_for(pattern))}
    if not meant:
        return None
    tops = [_LITERAL_TOP.match(pattern) for pattern in meant]
    folders = frozenset(top[1] for top in tops if top) if all(tops) else None
    # The path to the last name is matched once, not once for each pattern that begins with it.
    parts = [part for part in meant.values() if not part.startswith(_ANYWHERE)]
    names = [part[len(_ANYWHERE) :] for part in meant.values() if part.startswith(_ANYWHERE)]
    if names:
        parts.append(f"{_ANYWHERE}(?:{'|'.join(names)})")
    return PatternBlock(ignores, re.compile("|".join(parts), re.DOTALL), start, folders)


def expression_for(pattern: str) -> str | None:
    """The expression for a pattern, to match a whole path; None if it can match nothing."""
    if len(pattern) > _LONGEST:
        return None
    only_folders = pattern.endswith("/")
    pattern = pattern[:-1] if only_folders else pattern
    pieces = _pieces(pattern.removeprefix("/"))
    if not pieces:
        return None
    meant = _path(_split(pieces)) if "/" in pattern else _ANYWHERE + _name(pieces)
    return meant + ("/" if only_folders else "/?")


def _pieces(pattern: str) -> list[str] | None:
    """Split a pattern into expressions for single characters, slashes and stars; None for one that
    git rejects."""
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "*":
            start = at - 1
            while pattern[at : at + 1] == "*":
                at += 1
            alone = pattern[start - 1 : start] in ("", "/") and pattern[at : at + 1] in ("", "/")
            pieces.append(_ANY_FOLDERS if alone and at - start > 1 else _STARS)
        elif character == "?":
            pieces.append("[^/]")
        elif character == "[":
            bracket = _bracket(pattern, at)
            if bracket is None:
                return None
            expression, at = bracket
            pieces.append(expression)
        elif character == "\\":
            if at == len(pattern):
                return None
            pieces.append(re.escape(pattern[at]))
            at += 1
        else:
            pieces.append(re.escape(character))
    return pieces


def _bracket(pattern: str, at: int) -> tuple[str, int] | None:
    """The character set after a `[`, and where it ends."""
    negated = pattern[at : at + 1] in ("!", "^")
    first = at = at + negated
    members: list[str] = []
    before = ""
    while at < len(pattern) and (pattern[at] != "]" or at == first):
        named = re.compile(r"\[:([^]]*):\]").match(pattern, at)
        if named:
            if named[1] not in _CLASSES:
                return None
            members.append(_CLASSES[named[1]])
            before, at = "", named.end()
            continue
        is_range = pattern[at] == "-" and before and pattern[at + 1 : at + 2] not in ("", "]")
        at += bool(is_range)
        at += pattern[at] == "\\"
        if at >= len(pattern):
            return None
        if not is_range:
            members.append(re.escape(pattern[at]))
            before = pattern[at]
        else:
            if before <= pattern[at]:
                members.append(f"{re.escape(before)}-{re.escape(pattern[at])}")
            before = ""
        at += 1
    if at >= len(pattern):
        return None
    if not members:
        return ("[^/]" if negated else r"(?!)"), at + 1
    return rf"(?!/)[{'^' * negated}{''.join(members)}]", at + 1


def _split(pieces: list[str]) -> list[list[str]]:
    names: list[list[str]] = [[]]
    for piece in pieces:
        if piece == "/":
            names.append([])
        else:
            names[-1].append(piece)
    return names


def _name(pieces: list[str]) -> str:
    """The expression for one name. It commits to the match before each star."""
    chunks: list[list[str]] = [[]]
    for piece in pieces:
        if piece in (_STARS, _ANY_FOLDERS):
            chunks.append([])
        else:
            chunks[-1].append(piece)
    if len(chunks) == 1:
        return "".join(pieces)
    first, *middle, last = ("".join(chunk) for chunk in chunks)
    committed = "".join(f"(?>[^/]*?{chunk})" for chunk in middle if chunk)
    # A star alone must match something: there are no empty names.
    return f"(?=[^/]){first}{committed}[^/]*{last}"


def _path(names: list[list[str]]) -> str:
    """The expression for a path of names, where `**` stands for any number of folders."""
    runs: list[list[str]] = [[]]
    for pieces in names:
        if pieces == [_ANY_FOLDERS]:
            runs.append([])
        else:
            runs[-1].append(_name(pieces))
    first, *rest = ("".join(f"{name}/" for name in run) for run in runs)
    if not rest:
        return first.removesuffix("/")
    *middle, last = rest
    committed = "".join(f"(?>(?:[^/]++/)*?{run})" for run in middle if run)
    if not last:
        return f"{first}{committed}.*[^/]"
    return f"{first}{committed}(?:[^/]++/)*{last.removesuffix('/')}"
