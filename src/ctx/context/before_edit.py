"""What an agent is given about a file that it reads or edits: rules, past failures and decisions.

    ## Before you edit src/auth.py
    - Never log the token: the logs are shared.
    - [bugfix] Fixed test_refresh: the lock was taken twice

What mentions a function that the edit contains comes first. Hooks load this module.
"""

from collections.abc import Collection, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx.context import hook_queries, layer_lines, layer_rows, observation_lines
from ctx.context.contexts import BEFORE_EDIT, NOTHING, Context
from ctx.context.layer_lines import Layer
from ctx.ids import NodeId
from ctx.markdown import flat
from ctx.memory import model

_BUDGET = 200
_MOST = 100
_MOST_LISTED = 500
"""Of each kind, so many of the newest nodes are looked at to list the files."""
_KINDS = ("rule", "correction", "failure", "bugfix", "decision")
_TYPES = ("decision", "pattern")
_ORDER = {kind: place for place, kind in enumerate((*_KINDS, "pattern", "pinned"))}


class AboutFile(NamedTuple):
    """A file that is about to be edited."""

    path: str
    """From the top of the working tree."""
    item_ids: Sequence[str]
    """The nodes of items in it that memory mentions."""
    edit: str
    """The text of the edit."""


def anchors(connections: Sequence[Connection], project: str | None) -> "list[tuple[str, str, str]]":
    """The type, the id and the name of the files and items that have something to be shown."""
    rows = [
        row
        for tag in (*(f"kind:{kind}" for kind in _KINDS), model.PINNED)
        for row in hook_queries.nodes_with_tag(connections, project, tag, _MOST_LISTED)
    ]
    for node_type in _TYPES:
        rows += hook_queries.newest_of_type(connections, project, node_type, _MOST_LISTED)
    node_ids = list(dict.fromkeys(row[0] for row in rows))
    found = hook_queries.mentioned_anchors(connections, node_ids)
    return list(dict.fromkeys(found))


def context(
    connections: Sequence[Connection],
    project: str | None,
    about: AboutFile,
    *,
    session: str,
    given: Collection[str],
) -> Context:
    """What an agent is given. It knows what it did itself, and `given`."""
    named: dict[str, list[str]] = {}
    rows: dict[NodeId, Any] = {}
    for *row, item in hook_queries.nodes_that_mention(
        connections, project, about.path, about.item_ids, _MOST
    ):
        rows[row[0]] = row
        named.setdefault(row[0], []).append(item)
    tags: dict[NodeId, list[str]] = {node_id: [] for node_id in rows}
    for node_id, tag in hook_queries.tags(connections, list(rows)):
        tags[node_id].append(tag)
    ranked: list[tuple[bool, int, str, Any]] = []
    for node_id, row in sorted(rows.items(), reverse=True):
        metadata = model.from_json(row[3])
        kind = _kind(row[1], tags[node_id])
        if not kind or node_id in given or metadata.get("session") == session:
            continue
        symbols = metadata.get("symbols")
        names = [*named[node_id], *(symbols if isinstance(symbols, list) else ())]
        is_there = any(_is_in(each, about.edit) for each in names)
        ranked.append((not is_there, _ORDER[kind], kind, row))
    # Newer nodes stay first among equals.
    ranked.sort(key=lambda each: each[:2])
    authors = layer_rows.author_prefixes(connections, [row[0] for *_, row in ranked])
    lines = tuple(
        observation_lines.line_of(row, kind).with_author(authors.get(row[0], ""))
        for *_, kind, row in ranked
    )
    fitted = layer_lines.fit(Layer(BEFORE_EDIT, lines), _BUDGET)
    if not fitted.items:
        return NOTHING
    heading = layer_lines.HEADINGS[BEFORE_EDIT]
    text = fitted.text.replace(heading, f"{heading} {flat(about.path)}", 1)
    return Context(text, fitted.tokens, fitted.items)


def _kind(node_type: str, tags: Sequence[str]) -> str:
    """Why a node is shown before an edit; empty if it is not."""
    kinds = [tag.removeprefix("kind:") for tag in tags if tag.startswith("kind:")]
    known = [kind for kind in kinds if kind in _ORDER]
    if known:
        return min(known, key=_ORDER.__getitem__)
    if node_type in _TYPES:
        return node_type
    return "pinned" if model.PINNED in tags else ""


def _is_in(name: Any, edit: str) -> bool:
    """Whether an edit contains the last part of a qualified name."""
    if not isinstance(name, str):
        return False
    last = name.replace("::", ".").replace("#", ".").rpartition(".")[2].strip("()")
    return bool(last) and last in edit
