"""Suggestions for a name or path that does not exist."""

import difflib
import posixpath
import re

from ctx.code.lookup import Code, name_parts

_MOST_WORDS = 4_000
_MOST_OFFERED = 3
_LAST_PART = re.compile(r"(.+?)(?:::|[.#/])([^:.#/]+)", re.DOTALL)


def similar_names(code: Code, text: str, folder: str = "") -> list[str]:
    """Similar names of items; paths in the text may be relative to a folder."""
    wanted = name_parts(text) or [text]
    last = wanted[-1]
    if len(wanted) > 1:
        if similar := _similar_siblings(code, text, folder):
            return similar
        if namesakes := code.named(last):
            # The last name exists, but not with these names before it.
            shared = {
                namesake.name: len({*wanted} & {*name_parts(namesake.name)})
                for namesake in namesakes
            }
            best = sorted(shared, key=lambda name: -shared[name])
            # If many items match no better than all others, suggest none.
            is_any = shared[best[0]] == 1 and len(best) > _MOST_OFFERED
            return [] if is_any else best[:_MOST_OFFERED]
    for length in (2, 1):
        beginning = last[:length]
        if not beginning:
            continue
        rows = code.connection.execute(
            "SELECT DISTINCT name FROM items WHERE name >= ? AND name < ? LIMIT ?",
            (beginning, beginning + "\U0010ffff", _MOST_WORDS),
        )
        if similar := _close_matches(last, [name for (name,) in rows]):
            return similar
    return []


def similar_paths(code: Code, path: str) -> list[str]:
    name = posixpath.basename(path)
    every: list[str] = []
    for (known_path,) in code.connection.execute("SELECT path FROM files ORDER BY path"):
        if posixpath.basename(known_path)[:1] == name[:1]:
            every.append(known_path)
    known = {posixpath.basename(known_path): known_path for known_path in every[:_MOST_WORDS]}
    return [known[match] for match in _close_matches(name, list(known))]


def files_in(code: Code, folder: str, most: int) -> list[str]:
    """Files in a folder, the nearest first; the root is the empty path."""
    first = f"{folder}/" if folder else ""
    rows = code.connection.execute(
        "SELECT path FROM files WHERE path >= ? AND path < ?"
        " ORDER BY length(path) - length(replace(path, '/', '')), path LIMIT ?",
        (first, first + "\U0010ffff", most),
    )
    return [path for (path,) in rows]


def _similar_siblings(code: Code, text: str, folder: str) -> list[str]:
    """Similar names in the class or file that the rest of the text names."""
    match = _LAST_PART.fullmatch(text.strip())
    owners = code.find(match[1], folder) if match else []
    if not match or not owners:
        return []
    inside = code.located(code.within(owner.id for owner in owners)[:_MOST_WORDS])
    known = {(name_parts(item.name) or [item.name])[-1]: item.name for item in inside}
    return [known[match] for match in _close_matches(match[2], list(known))]


def _close_matches(word: str, known: list[str]) -> list[str]:
    return difflib.get_close_matches(word, known, n=_MOST_OFFERED)
