"""Find the items or the file that a person named, or explain why there are none."""

import os
from typing import NoReturn

from ctx.code import file_listing, lookup, suggestions
from ctx.code.lookup import Code, IndexedFile, LocatedItem, without_impls
from ctx.codebase.indexing import IndexAge, OpenIndex
from ctx.errors import NodeNotFound, PathRefused

_MOST_LISTED = 5


def require(opened: OpenIndex, word: str) -> list[LocatedItem]:
    """The items with a name; at least one."""
    items = opened.code.find(word, opened.folder)
    if items:
        return items
    place = lookup.PLACE.fullmatch(word.strip())
    file = opened.code.file(place[1] if place else word.strip(), opened.folder)
    if file and file.skipped:
        raise NodeNotFound(f"{file.path} was not indexed: {file.skipped}.", hint="")
    if file and place:
        lines = "1 line" if file.lines == 1 else f"{file.lines} lines"
        raise NodeNotFound(
            f"{file.path} has {lines}, and no line {place[2]}.",
            hint=reservation(opened.age) or f"`ctx code outline {file.path}` shows what is in it.",
        )
    if doubt := reservation(opened.age):
        raise NodeNotFound(f"No item in the code index so far is named {word[:80]!r}.", hint=doubt)
    hint = "`ctx code outline FILE` shows what is in a file."
    raise NodeNotFound(
        f"No item in the code is named {word[:80]!r}.",
        hint=_did_you_mean(suggestions.similar_names(opened.code, word, opened.folder)) or hint,
    )


def shown_items(items: list[LocatedItem]) -> tuple[LocatedItem, ...]:
    """The items to show to a person."""
    return tuple(without_impls(items))


def require_file(opened: OpenIndex, path: str) -> IndexedFile:
    file = opened.code.file(path, opened.folder)
    return file or _refuse(opened, path)


def reservation(age: IndexAge) -> str | None:
    """Why the index may miss something that exists; None if everything was read."""
    if age.state == "busy":
        return "Another process is reading the code. Try again in a moment."
    if age.refreshed_at is None:
        return "The code is not fully indexed yet. Run `ctx code index`."
    if age.state == "as it was":
        return f"The code was read at {age.refreshed_at}: leave out --no-refresh to refresh it."
    if age.state == "not writable":
        return f"The code was read at {age.refreshed_at}, and the index cannot be written here."
    return None


def _refuse(opened: OpenIndex, path: str) -> NoReturn:
    """Explain why a path is not a file of the index."""
    shown_path = repr(path[:200])
    inside = [
        name
        for name in opened.code.inside(path, opened.folder)
        if name != ".." and not name.startswith("../")
    ]
    if not inside:
        raise PathRefused(f"{shown_path} is outside of the project {opened.root}.")
    for name in inside:
        if reason := file_listing.exclusion_reason(opened.root, name):
            raise PathRefused(f"{shown_path} is not in the code index: {reason}.")
        if os.path.isdir(os.path.join(opened.root, name)):
            raise PathRefused(f"{shown_path} is a folder.", hint=_suggest_files(opened.code, name))
    if doubt := reservation(opened.age):
        raise PathRefused(f"{shown_path} is not in the code index so far.", hint=doubt)
    if items := opened.code.named(path):
        item = items[0]
        raise PathRefused(
            f"{shown_path} is not a file: {item.name} is a {item.kind}.",
            hint=f"`ctx code outline {item.path}` shows the file that contains it.",
        )
    if any(os.path.lexists(os.path.join(opened.root, name)) for name in inside):
        hint = "git may ignore it, or .ctxignore, or the setting ingestion.ignore_globs."
        raise PathRefused(f"{shown_path} is not in the code index.", hint=hint)
    raise PathRefused(
        f"There is no file {shown_path} in the code.",
        hint=_did_you_mean(suggestions.similar_paths(opened.code, path))
        or "`ctx code` shows what is indexed.",
    )


def _suggest_files(code: Code, folder: str) -> str:
    """Suggest files to name instead of a folder."""
    files = suggestions.files_in(code, "" if folder == "." else folder, _MOST_LISTED + 1)
    if not files:
        return "None of its files are in the code index."
    more = ", …" if len(files) > _MOST_LISTED else "."
    return f"Name a file in it: {', '.join(files[:_MOST_LISTED])}{more}"


def _did_you_mean(names: list[str]) -> str:
    return f"Did you mean {' or '.join(f'`{name}`' for name in names)}?" if names else ""
