"""The layers of a context about past sessions: what they did, changed, and learned.

    ## Recent Sessions
    - [yesterday] Refresh tokens once. Next: the same for the mobile client
    - [2 days ago] Check the links. Fixed one in docs/setup.md (12 times)
    ## Commands that work here
    - test: `pnpm vitest run` (14 runs in 6 sessions)
    ## Recently Changed Code
    auth/service.py:
      def refresh(self, token: str) -> Token  [MODIFIED]
    ## Project Knowledge
    - Convention: Errors are values, never exceptions

Each layer is a list of lines, most important first. A layer that cannot be read has a `problem`,
and the others are not affected.

Hooks load this module, so it imports nothing slow.
"""

import os
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock
from ctx.context import command_lines, hook_queries, layer_rows, past_work
from ctx.context.contexts import CODE, COMMANDS, LEARNINGS, PAST_WORK, RULES, SESSIONS, STANDING
from ctx.context.layer_lines import (
    Layer,
    LayerLimits,
    LayerLine,
    cut,
    digest,
    marked,
    plain,
    sentence,
)
from ctx.markdown import flat
from ctx.memory import learning_confidence, model

# The lengths of the forms of a line, in characters.
_LENGTHS = (300, 160, 80)
_SHORT_LENGTHS = (320, 200, 120, 70)
_SIGNATURES = (110, 60)
_SESSIONS_WITH_CODE = 5
_MOST_OF_A_FILE = 8
_MOST_LEARNINGS = 2_000
_MOST_SESSIONS_READ = 400
_FEWEST_RUNS = 3
"""The same single prompt so often is an automated run."""
_LATER_REQUEST = " Then: "
"""Synthesis writes this between the requests of a session."""
# Dates, times, ids and long numbers, but not `phase 3`.
_DIFFERS = re.compile(
    r"\b(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:t[\d:.]+z?)?|\d{1,2}:\d{2}(?::\d{2})?|\d{5,}"
    r"|(?=[a-z-]*\d)[0-9a-f]{7,}(?:-[0-9a-f]{4,})*)\b"
)


class LayerRequest(NamedTuple):
    """Which sessions the layers cover."""

    project: str | None
    session: str
    """The session that gets the context; its own work is left out."""
    limits: LayerLimits
    rule_tokens: int
    past_work_tokens: int
    """Besides those that rules leave."""
    root: str = ""
    """The top of the working tree; empty if files are not looked at."""
    shown: frozenset[str] = frozenset()
    """Sessions whose last message or main change another layer shows."""


def build_layers(connections: Sequence[Connection], asked: LayerRequest) -> list[Layer]:
    """The layers in order. The last store is the user's, which has the sessions."""
    limits = asked.limits
    (standing, rules, work), shown = _past_work(connections, asked)
    asked = asked._replace(shown=shown)
    commands = _build_layer(COMMANDS, _commands, connections, asked, limits.most_commands)
    sessions = _build_layer(SESSIONS, _sessions, connections, asked, limits.most_sessions)
    learnings = _build_layer(LEARNINGS, _learnings, connections, asked, limits.most_learnings)
    return [
        standing,
        rules,
        commands,
        _without_commands(work, commands),
        _build_layer(CODE, _code, connections, asked, limits.most_changes),
        sessions,
        _without_commands(learnings, commands),
    ]


def _without_commands(layer: Layer, commands: Layer) -> Layer:
    """A layer without what the layer of commands says too."""
    names = [line.label.removeprefix("command:") for line in commands.lines]
    known = tuple(f"{name}{end}" for name in names for end in ("`", " "))
    shown = "\n".join(line.texts[0] for line in commands.lines)

    def is_shown(line: LayerLine) -> bool:
        if run := layer_rows.RUN_WITH.match(line.title):
            return line.title[run.end() :].startswith(known)
        needed = layer_rows.NEEDS.search(line.texts[0])
        return needed is not None and f"{needed[1]}=" in shown

    lines = tuple(line for line in layer.lines if not is_shown(line))
    return layer._replace(lines=lines)


def _past_work(
    connections: Sequence[Connection], asked: LayerRequest
) -> tuple[list[Layer], frozenset[str]]:
    """The layers of past work, and the sessions that need no line of their own."""
    names, most = (STANDING, RULES, PAST_WORK), asked.limits.most_past_work
    try:
        found = past_work.read(
            *(connections, asked.project, asked.session),
            *(asked.rule_tokens, asked.past_work_tokens, asked.root),
        )
    except sqlite3.DatabaseError as error:
        return [Layer(name, (), 0, str(error)) for name in names], frozenset()
    every = (found.standing, found.rules, found.past_work)
    layers = [
        Layer(name, lines[:most], max(0, len(lines) - most))
        for name, lines in zip(names, every, strict=True)
    ]
    return layers, found.sessions


def _build_layer(
    name: str,
    build: "Callable[[Sequence[Connection], LayerRequest, int], tuple[list[LayerLine], int]]",
    connections: Sequence[Connection],
    asked: LayerRequest,
    most: int,
) -> Layer:
    try:
        lines, count = build(connections, asked, most)
    except sqlite3.DatabaseError as error:
        return Layer(name, (), 0, str(error))
    return Layer(name, tuple(lines[:most]), max(0, count - most))


# Recent sessions


def _sessions(
    connections: Sequence[Connection], asked: LayerRequest, most: int
) -> tuple[list[LayerLine], int]:
    lines, count = _session_lines(connections, asked, hook_queries.MOST_SESSIONS)
    if len(lines) < min(most, count):
        # Automated runs take one line, even if all of the latest sessions are such runs.
        lines, _ = _session_lines(connections, asked, _MOST_SESSIONS_READ)
    return lines[:most], len(lines)


def _session_lines(
    connections: Sequence[Connection], asked: LayerRequest, most_read: int
) -> tuple[list[LayerLine], int]:
    """The lines, and the number of sessions in them."""
    every = hook_queries.sessions(connections[-1], asked.project, asked.session, most_read)
    own = [row for row in every if row[0] not in asked.shown]
    seconds = {row[2]: row[1] or 0 for row in own}
    nodes = {
        row[0]: row for row in hook_queries.valid_nodes(connections, list(seconds), asked.project)
    }
    for row in layer_rows.shared(connections, "summary", asked.project, asked.session):
        if row[0] not in nodes:
            nodes[row[0]] = row
            seconds[row[0]] = (clock.parse_iso(row[5]) or 0) // 1000
    written_by = layer_rows.author_prefixes(connections, list(nodes))
    today = clock.day_number(clock.now_ms())
    ordered = sorted(nodes, key=lambda node_id: (seconds[node_id], node_id), reverse=True)
    runs = {
        node_id: (written_by.get(node_id, ""), _request_key(nodes[node_id])) for node_id in ordered
    }
    times = Counter(runs.values())
    # Sessions with the same summary appear once, at their latest time. So do automated runs.
    lines: dict[tuple[str, str], LayerLine] = {}
    for node_id in ordered:
        author, request = runs[node_id]
        count = times[author, request] if request else 1
        age = clock.days_ago(today - clock.day_number(seconds[node_id] * 1000))
        is_automated = count >= _FEWEST_RUNS
        line = _session_line(nodes[node_id], age, author, count if is_automated else 1)
        lines.setdefault((author, request if is_automated else line.digest), line)
    return list(lines.values()), len(ordered)


def _request_key(row: Sequence[Any]) -> str:
    """The request of a session with one prompt, without what differs between automated runs."""
    about = model.from_json(row[3])
    request = flat(str(about.get("request") or ""))
    if about.get("key") != "summary" or request not in flat(row[2]) or _LATER_REQUEST in request:
        return ""
    return _DIFFERS.sub("#", request.casefold())


def _session_line(row: Sequence[Any], age: str, author: str, count: int) -> LayerLine:
    told = _summary_line(row)
    times = f" ({count:,} times)" if count > 1 else ""
    texts = tuple(f"- [{age}] {author}{cut(told, length)}{times}" for length in _LENGTHS)
    return LayerLine(row[0], layer_rows.label(row), row[5], digest(told), texts, title=told)


def _summary_line(row: Sequence[Any]) -> str:
    """The goal of a session, what it did and what is left to do, in one line."""
    about = model.from_json(row[3])
    made_of = [str(about.get("request", "")), *layer_rows.texts(about.get("completed"))]
    if about.get("key") == "summary" and not all(each in row[2] for each in made_of):
        # The user has edited it since.
        return flat(row[2][: layer_rows.LONGEST_COMPARED])
    title = layer_rows.one_line(about.get("title")) or layer_rows.one_line(about.get("request"))
    # A session that completed nothing may have learned or edited something.
    done = layer_rows.one_line(about.get("completed")) or layer_rows.one_line(about.get("learned"))
    done = done or _edited_files_text(about) or layer_rows.one_line(about.get("investigated"))
    further = layer_rows.next_steps(about)
    if title and title.casefold() not in done.casefold():
        done = f"{sentence(title)} {done}".strip()
    told = f"{sentence(done)} Next: {further}" if done and further else done
    return told or flat(row[2][: layer_rows.LONGEST_COMPARED])


def _edited_files_text(about: dict[str, Any]) -> str:
    files = layer_rows.texts(about.get("files_edited"))
    more = f" and {len(files) - 3:,} more" if len(files) > 3 else ""
    return flat(f"Edited {', '.join(files[:3])}{more}") if files else ""


def _commands(
    connections: Sequence[Connection], asked: LayerRequest, most: int
) -> tuple[list[LayerLine], int]:
    lines = command_lines.lines(connections[-1], asked.project, asked.session)
    return lines[:most], len(lines[:most])


# Recently changed code


def _code(
    connections: Sequence[Connection], asked: LayerRequest, most: int
) -> tuple[list[LayerLine], int]:
    sessions: dict[str, None] = {}
    files: dict[str, dict[tuple[str, str], Sequence[Any]]] = {}
    changes = hook_queries.symbol_changes(connections[-1], asked.project, asked.session)
    for row in _in_this_tree(connections[-1], changes, asked.root):
        sessions[row[0]] = None
        if len(sessions) > _SESSIONS_WITH_CODE:
            break
        files.setdefault(row[1], {}).setdefault((row[2], row[3]), row)
    lines: list[LayerLine] = []
    for path, items in files.items():
        rows = sorted(items.values(), key=lambda row: (row[6], row[2]))
        newest, state = max(row[7] for row in rows), digest(repr([row[2:6] for row in rows]))
        told = [_symbol_change_texts(row) for row in rows[:_MOST_OF_A_FILE]]
        if len(rows) > _MOST_OF_A_FILE:
            told.append((f"  and {len(rows) - _MOST_OF_A_FILE:,} more",))
        label, group = f"code:{flat(path)}", f"{plain(path)}:"
        lines += [LayerLine("", label, newest, state, texts, group) for texts in told]
    return lines[:most], len(lines)


def _in_this_tree(
    connection: Connection, changes: Sequence[Sequence[Any]], root: str
) -> Iterator[Sequence[Any]]:
    """The changes without those that were made in another working tree and are only there."""
    folders: dict[str, str] = {}
    # The layer of sessions reports if the table cannot be read.
    with suppress(sqlite3.DatabaseError):
        folders = hook_queries.working_trees(connection, list({row[0] for row in changes}))
    trees = OtherTrees(root)
    for row in changes:
        session, path, name, _, change, signature, *_ = row
        folder = folders.get(session, root) if root else root
        if folder == root or trees.has_change(folder, path, name, change, signature):
            yield row


def _symbol_change_texts(row: Sequence[Any]) -> tuple[str, ...]:
    _, _, name, _, change, signature, _, _ = row
    tag = f"  [{flat(change).upper()}]"
    told = flat(signature) or flat(name)
    return tuple(
        f"  {plain(cut(each, length))}{tag}"
        for each, length in zip((told, flat(name) or told), _SIGNATURES, strict=True)
    )


# Learnings


def _learnings(
    connections: Sequence[Connection], asked: LayerRequest, most: int
) -> tuple[list[LayerLine], int]:
    found: dict[str, tuple[tuple[int, int, str], Sequence[Any]]] = {}
    now_ms = clock.now_ms()
    for connection in connections:
        for row in hook_queries.learnings(connection, asked.project, _MOST_LEARNINGS):
            about = model.from_json(row[3])
            confidence = learning_confidence.confidence_at(about, now_ms)
            if confidence >= asked.limits.least_confidence:
                rank = (-confidence, -_number(about.get("times_seen")), row[0])
                found[row[0]] = rank, row
    best = [row for _, row in sorted(found.values(), key=itemgetter(0))[:most]]
    written_by = layer_rows.author_prefixes(connections, [row[0] for row in best])
    lines = [_learning_line(row).with_author(written_by.get(row[0], "")) for row in best]
    return lines, len(found)


def _learning_line(row: Sequence[Any]) -> LayerLine:
    category = flat(row[6].partition(":")[2]).capitalize()
    told = flat(row[2][: layer_rows.LONGEST_COMPARED])
    shown = marked(told, layer_rows.source(row), _SHORT_LENGTHS)
    texts = tuple(f"- {category}: {each}" for each in shown)
    return LayerLine(
        row[0], layer_rows.label(row), row[5], digest(f"{category} {told}"), texts, "", told
    )


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


_LARGEST_COMPARED = 512 * 1024


class OtherTrees:
    """Whether a change that was made in another working tree of the repository is in this one.

    The other tree may be on another branch, or may not be committed yet. A change counts as present
    if the file is the same in both trees. If the files differ, a new item must be in the file here,
    and a deleted one must not. A modified item of a different file counts only if the other tree is
    gone: then its signature must be here. Each file is read once.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._texts: dict[str, str | None] = {}

    def has_change(self, folder: str, path: str, name: str, change: str, signature: str) -> bool:
        """Whether this tree has a change that was made in `folder`."""
        here = self._text(os.path.join(self._root, path))
        there = self._text(os.path.join(folder, path))
        if here == there and here is not None:
            return True
        last = name.rpartition(".")[2].rpartition("::")[2]
        if change == "deleted":
            return here is None or last not in here
        if here is None or last not in here:
            return False
        is_here = "".join(signature.split()) in "".join(here.split())
        return is_here and (change == "new" or there is None)

    def _text(self, path: str) -> str | None:
        """The text of a file; None if there is none, or if it is too large to compare."""
        if path not in self._texts:
            try:
                with open(path, "rb") as file:
                    data = file.read(_LARGEST_COMPARED + 1)
            except (OSError, ValueError):
                data = None
            is_known = data is not None and len(data) <= _LARGEST_COMPARED
            self._texts[path] = data.decode("utf-8", "replace") if data and is_known else None
        return self._texts[path]
