"""What happened around a node, in a session, or to a file, in the order of time.

The entries are single lines with ids: `ctx show` and `recall` give the whole text of a node, and
`ctx sessions replay` everything of a session.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from ctx import clock, layout, tokens
from ctx.capture import session_state, steps
from ctx.capture.session_state import Session
from ctx.capture.steps import Step
from ctx.code.history import commit_queries
from ctx.codebase import freshness
from ctx.errors import NodeNotFound, SessionNotFound, UsageError
from ctx.ids import NodeId
from ctx.memory import lookups
from ctx.memory.model import ANCHOR_TYPES, Node
from ctx.memory.query import execute
from ctx.memory.query.filters import PathFilter, TypeFilter
from ctx.memory.query.query_parser import Expression, Not, Or, Query
from ctx.operations import keep_receipt
from ctx.operations.show import show
from ctx.operations.visible_nodes import VisibleNodes, is_visible, scope_of
from ctx.workspace import Memory

DEFAULT_LIMIT = 20

_MOST = 200
"""Entries of each kind that are read on either side."""
_LONGEST_LINE = 160
_COMMIT = "commit"
_WORK = ("prompt", "plan", "write", "read", "command", "agent", "recap", "mark")
"""Kinds of steps that a timeline shows. What the agent said is in the summary."""

Around = Literal["node", "session", "file"]


class Options(NamedTuple):
    around: str
    """The id of a node or a session, or the path of a file."""
    limit: int = DEFAULT_LIMIT
    """0 is no limit."""
    before: int | None = None
    """Only entries before this position, which an earlier answer named."""
    visible: VisibleNodes = VisibleNodes()


class TimelineEntry(NamedTuple):
    """One thing that happened."""

    at: str
    kind: str
    """The type of a node; `prompt`, `write`, `read`, `command`, … for a step; `commit`; for a
    change of the node itself `change`."""
    text: str
    id: str
    """The short id of a node, or the hash of a commit; empty for a step."""
    session: str
    path: str
    is_center: bool
    """Whether it is the node that the timeline is about."""


class TimelineResult(NamedTuple):
    """The answer of `ctx timeline`."""

    around: Around
    id: str
    """The id of the node or the session, or the path of the file."""
    title: str
    entries: tuple[TimelineEntry, ...]
    """In the order of time."""
    earlier: int
    """How many more there are before these. It is also the position to continue from."""
    later: int
    """How many more there are after these."""


def timeline(memory: Memory, options: Options) -> TimelineResult:
    """What the id or the path stands for is found out: a file that exists, a node, a session."""
    around = options.around.strip()
    if not around:
        raise UsageError(
            "Name a node, a session or a file.", hint="`ctx list` and `ctx sessions` show ids."
        )
    if path := _existing_file(memory, around):
        return _page(_of_file(memory, path, options), options)
    with suppress(NodeNotFound):
        node_id = memory.graph.find(around)
        return _page(_of_node(memory, node_id, options), options)
    with suppress(SessionNotFound, UsageError):
        session = session_state.get(memory.local, around)
        if _is_visible(memory, session, options.visible):
            return _page(_of_session(memory, session, options), options)
    of_gone_file = _of_file(memory, _project_path(memory, around), options)
    if not of_gone_file.entries:
        raise NodeNotFound(
            f"Nothing is known about {around[:80]!r}.",
            hint="Give the id of a node or a session, or the path of a file in this project.",
        )
    return _page(of_gone_file, options)


def timeline_with_receipt(memory: Memory, options: Options) -> TimelineResult:
    """The same for an agent: a receipt says which nodes it was shown."""
    found = timeline(memory, options)
    costs = {
        memory.graph.find(each.id): tokens.estimate(each.text)
        for each in found.entries
        if each.id and each.kind != _COMMIT
    }
    nodes = list(memory.graph.nodes(costs))
    total = sum(tokens.estimate(each.text) for each in found.entries)
    keep_receipt.keep_nodes(memory, "timeline", nodes, costs, total)
    return found


def _page(whole: TimelineResult, options: Options) -> TimelineResult:
    """The part of a timeline that is asked for: before a position, around the node, or the end."""
    entries = whole.entries
    end = len(entries) if options.before is None else max(0, min(options.before, len(entries)))
    if not options.limit:
        return whole._replace(entries=entries[:end], later=len(entries) - end)
    center = next((place for place, each in enumerate(entries) if each.is_center), None)
    if center is not None and options.before is None:
        end = min(end, max(center + 1 + options.limit // 2, options.limit))
    start = max(0, end - options.limit)
    return whole._replace(entries=entries[start:end], earlier=start, later=len(entries) - end)


def _of_node(memory: Memory, node_id: NodeId, options: Options) -> TimelineResult:
    node = memory.graph.node(node_id)
    scope = scope_of(memory, options.visible._replace(include_superseded=True))
    if not is_visible(node, scope):
        raise NodeNotFound(f"No node has the id {options.around.strip()[:40]!r}.")
    shown = show(memory, node_id, with_edges=False, with_history=True)
    first = next((each.change for each in shown.history or ()), "")
    changes = [
        TimelineEntry(
            each.at, "change", _line(each.what), shown.short_ids[node_id], each.session, "", False
        )
        for each in shown.history or ()
        if each.change != first
    ]
    center = _node_entry(node, shown.short_ids[node_id])._replace(is_center=True)
    others = _nodes_near(memory, node, options)
    of_session = [
        entry
        for session in _sessions_of(node)
        for entry in _steps(steps.of_session(memory.local, session))
    ]
    entries = _sorted([*others, *changes, *of_session, center])
    return TimelineResult("node", node.id, _line(node.content), entries, 0, 0)


def _of_session(memory: Memory, session: Session, options: Options) -> TimelineResult:
    kept = steps.of_session(memory.local, session.id)
    tagged = [
        node_id
        for each in memory.graph.connections
        for node_id in lookups.with_tag(each, f"session:{session.id}")
    ]
    nodes = _entries_of(memory, _visible(memory, tagged, options))
    title = steps.title_of(kept).text or session.request
    return TimelineResult(
        "session", session.id, _line(title), _sorted([*_steps(kept), *nodes]), 0, 0
    )


def _of_file(memory: Memory, path: str, options: Options) -> TimelineResult:
    if layout.unfit_name(path):
        raise UsageError(f"{path[:80]!r} is not the path of a file.")
    query = _only(PathFilter(path))
    scope = scope_of(memory, options.visible._replace(include_superseded=True))
    found = execute.matching(memory.graph.connections, query, scope, clock.now_ms(), limit=_MOST)
    nodes = _entries_of(memory, _visible(memory, found.ids, options))
    project = memory.project
    kept = steps.about_file(memory.local, path, project, _MOST) if project else []
    entries = _sorted([*_steps(kept), *nodes, *_commits(memory, path)])
    return TimelineResult("file", path, path, entries, 0, 0)


def _commits(memory: Memory, path: str) -> list[TimelineEntry]:
    """The git commits of a file, as far as the index has them."""
    if (codebase := freshness.codebase_here(memory)) is None:
        return []

    def look(at_hand: freshness.AvailableCode) -> list[TimelineEntry]:
        if at_hand.code is None:
            return []
        commits = commit_queries.commits_of(at_hand.code.connection, path, _MOST)
        return [
            TimelineEntry(
                clock.iso(1000 * each.time),
                _COMMIT,
                _line(each.subject),
                each.hash[:12],
                "",
                "",
                False,
            )
            for each in commits
        ]

    return freshness.with_code(codebase, path, look)


def _nodes_near(memory: Memory, node: Node, options: Options) -> list[TimelineEntry]:
    """The nodes that were added before and after a node. Ids sort by time."""
    scope = scope_of(memory, options.visible)
    stated = _only(Not(Or(tuple(map(TypeFilter, ANCHOR_TYPES)))))
    found = execute.matching(memory.graph.connections, stated, scope, clock.now_ms())
    later: list[NodeId] = []
    earlier: list[NodeId] = []
    for node_id in found.ids:
        if node_id > node.id:
            later.append(node_id)
        elif node_id < node.id:
            earlier.append(node_id)
            if len(earlier) == _MOST:
                break
    return _entries_of(memory, memory.graph.nodes([*later[-_MOST:], *earlier]))


def _only(expression: Expression) -> Query:
    """Everything in sight to which a filter applies, the newest first."""
    return Query("", "filters", expression, "", names_project=False, names_task=False)


def _entries_of(memory: Memory, nodes: Iterable[Node]) -> list[TimelineEntry]:
    stated = [node for node in nodes if node.type not in ANCHOR_TYPES]
    short_ids = memory.graph.shown(node.id for node in stated)
    return [_node_entry(node, short_ids[node.id]) for node in stated]


def _visible(memory: Memory, node_ids: Iterable[NodeId], options: Options) -> list[Node]:
    scope = scope_of(memory, options.visible._replace(include_superseded=True))
    nodes = memory.graph.nodes(list(dict.fromkeys(node_ids)))
    return [node for node in nodes if is_visible(node, scope)]


def _node_entry(node: Node, short_id: str) -> TimelineEntry:
    title = node.metadata.get("title")
    text = title if isinstance(title, str) and title else node.summary or node.content
    session = next(iter(_sessions_of(node)), "")
    mark = " (superseded)" if node.superseded_by else ""
    return TimelineEntry(
        node.created_at, node.type, f"{_line(text)}{mark}", short_id, session, "", False
    )


def _steps(kept: Sequence[Step]) -> list[TimelineEntry]:
    return [
        TimelineEntry(step.at, step.kind, _step_line(step), "", step.session, step.path, False)
        for step in kept
        if step.kind in _WORK
    ]


def _step_line(step: Step) -> str:
    match step.kind:
        case "write":
            lines = f" (+{step.added} −{step.removed})" if step.added or step.removed else ""
            names = ", ".join(f"{each.change} {each.name}" for each in step.changes[:3])
            return _line(f"{step.path}{lines}{f': {names}' if names else ''}")
        case "read":
            return _line(step.path)
        case "command":
            failed = "" if step.ok else " (failed)"
            return f"{_line(step.text)}{failed}"
        case _:
            return _line(step.text)


def _sorted(entries: Iterable[TimelineEntry]) -> tuple[TimelineEntry, ...]:
    """By time. Within a second, steps come first in their own order, then nodes by id, which
    increases with time."""

    def order(entry: TimelineEntry) -> tuple[str, str]:
        return entry.at, "" if entry.kind == _COMMIT else entry.id

    return tuple(sorted(entries, key=order))


def _sessions_of(node: Node) -> list[str]:
    return [tag.removeprefix("session:") for tag in node.tags if tag.startswith("session:")]


def _is_visible(memory: Memory, session: Session, visible: VisibleNodes) -> bool:
    """Whether a session may be shown: those of other projects are not, unless all are."""
    if visible.all_projects or session.id == memory.session:
        return True
    return session.project in (None, memory.project if visible.project is None else visible.project)


def _existing_file(memory: Memory, text: str) -> str:
    """The path of a file in the project; empty if there is none."""
    if memory.project is None or "\0" in text:
        return ""
    path = _project_path(memory, text)
    root = memory.place.folder
    return path if os.path.isfile(os.path.join(root, path)) else ""


def _project_path(memory: Memory, text: str) -> str:
    """A path from the project's root, given from there or from the folder of the command."""
    root = memory.place.folder
    from_folder = os.path.normpath(os.path.join(memory.folder, text))
    inside = os.path.relpath(from_folder, root)
    if not inside.startswith("..") and os.path.isfile(from_folder):
        return inside
    return os.path.normpath(text).removeprefix(f"{root}/")


def _line(text: str) -> str:
    line = " ".join(text[: _LONGEST_LINE * 4].split())
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1].rstrip()}…"
