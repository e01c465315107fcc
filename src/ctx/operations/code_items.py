"""What a person means by a word about code, or why it means nothing."""

from ctx.code.lookup import File, Located, without_impls
from ctx.errors import NodeNotFound, PathRefused
from ctx.operations.code_index import Opened


def require(opened: Opened, word: str) -> list[Located]:
    """The items of a name; at least one."""
    found = opened.code.find(word, opened.folder)
    if found:
        return found
    near = opened.code.near(word)
    hint = "`ctx code outline FILE` shows what is in a file."
    if near:
        hint = f"Did you mean {' or '.join(f'`{name}`' for name in near)}?"
    raise NodeNotFound(f"Nothing in the code is called {word[:80]!r}.", hint=hint)


def shown(found: list[Located]) -> tuple[Located, ...]:
    """The items that a person is told of."""
    return tuple(without_impls(found))


def require_file(opened: Opened, path: str) -> File:
    file = opened.code.file(path, opened.folder)
    if file:
        return file
    near = opened.code.near_path(path)
    hint = "git may ignore it, or `ctx code index` has not seen it yet."
    if near:
        hint = f"Did you mean {' or '.join(f'`{each}`' for each in near)}?"
    raise PathRefused(f"{path[:200]!r} is not in the index of the code.", hint=hint)
