"""Finds nodes by the number or path of their document: `task_0043`, `decision_0007`.

Two branches may use the same number. Then a few more characters of the file name select one:
`task_0043-k3x9`.
"""

import re
from collections.abc import Iterator
from sqlite3 import Connection

from ctx.errors import AmbiguousId, NodeNotFound
from ctx.ids import NodeId
from ctx.memory.model import Node

_DOCUMENT_NAME = re.compile(r"(task|decision)_(\d{1,9})(?:-(.+))?", re.IGNORECASE | re.ASCII)
_NUMBERED = {
    "task": re.compile(r"task_(\d{1,9})(?:-(.+))?", re.IGNORECASE | re.ASCII),
    "decision": re.compile(r"(\d{1,9})(?:-(.+))?", re.ASCII),
}


def find(connection: Connection, text: str) -> NodeId:
    paths = dict(_matching_documents(connection, text.strip()))
    if not paths:
        raise NodeNotFound(
            f"There is no node {text[:80]!r}.",
            hint="`ctx list --type=task` and `--type=decision` show what there is.",
        )
    if len(paths) > 1:
        detail = "\n".join(f"  {node_id}  {path}" for node_id, path in paths.items())
        raise AmbiguousId(
            f"Several documents are called {text[:80]}.",
            detail=detail,
            hint="Give its id, or more of the file's name.",
        )
    return next(iter(paths))


def names(connection: Connection) -> dict[str, NodeId]:
    """The names of tasks and decisions, newest first, with their nodes."""
    rows = connection.execute(
        "SELECT id, type, json_extract(metadata, '$.file') AS file FROM nodes"
        " WHERE type IN ('task', 'decision') AND json_extract(metadata, '$.file') IS NOT NULL"
        " ORDER BY id DESC"
    )
    called: dict[str, list[tuple[NodeId, str]]] = {}
    for node_id, node_type, file in rows:
        if numbered := _match_number(node_type, str(file)):
            short = f"{node_type}_{numbered[1]}"
            called.setdefault(short, []).append((node_id, numbered[2] or ""))
    return {
        short if len(matches) == 1 else f"{short}-{rest}": node_id
        for short, matches in called.items()
        for node_id, rest in matches
    }


def name(node: Node) -> str | None:
    """The name of one node; another node may have the same name."""
    file = node.metadata.get("file")
    numbered = _match_number(node.type, file) if isinstance(file, str) else None
    return f"{node.type}_{numbered[1]}" if numbered else None


def _match_number(node_type: str, file: str) -> re.Match[str] | None:
    """The number in a file's name, and the rest of the name."""
    pattern = _NUMBERED.get(node_type)
    return pattern.fullmatch(file.rpartition("/")[2].removesuffix(".md")) if pattern else None


def _matching_documents(connection: Connection, text: str) -> Iterator[tuple[NodeId, str]]:
    match = _DOCUMENT_NAME.fullmatch(text.removesuffix(".md"))
    path = text.removeprefix("./").removeprefix(".ctx/").removeprefix("narrative/")
    rows = connection.execute(
        "SELECT id, type, json_extract(metadata, '$.file') AS file FROM nodes"
        " WHERE json_extract(metadata, '$.file') IS NOT NULL ORDER BY id"
    )
    for node_id, node_type, file in rows:
        if not isinstance(file, str):
            continue
        if file in (path, f"{path}.md"):
            yield node_id, file
        elif match and match[1].lower() == node_type:
            numbered = _match_number(node_type, file)
            is_number = numbered is not None and int(numbered[1]) == int(match[2])
            if numbered and is_number and _is_part(match[3], numbered[2] or ""):
                yield node_id, file


def _is_part(rest: str | None, whole: str) -> bool:
    if rest is None:
        return True
    rest, whole = rest.casefold(), whole.casefold()
    return whole == rest or whole.startswith(f"{rest}-") or whole.endswith(f"-{rest}")
